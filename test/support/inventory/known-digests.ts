import { type DigestInputs, digestInputs, type InputDigest } from '../../../src/inventory/core/digest.ts';
import type { EntryContent } from '../../../src/inventory/entry.ts';
import type { JsonPointer } from '../../../src/kit/json-pointer.ts';
import { hold } from './violation.ts';

const mostKnown = 200_000;
const byText = new Map<string, InputDigest>();
const textOf = new Map<string, string>();
const segmentsOf = new Map<JsonPointer, readonly string[]>();

/** What is read of one version of an entry, the force value included, with what is known of it. */
export interface KnownContent extends EntryContent {
  readonly digests: { readonly of: Reads; readonly digest: InputDigest }[];
}

type Reads = Parameters<DigestInputs>[1];

/** The real digest, worked out once for the same inputs: thousands of schedules have them in common. Two inputs with one are a Violation. */
export function knownDigest(content: KnownContent, registration: Reads, force: string | undefined): InputDigest {
  const { digests } = content;
  for (const known of digests) if (known.of === registration) return known.digest;
  const digest = digestOfText(content, registration, force);
  digests.push({ of: registration, digest });
  return digest;
}

function digestOfText(...of: Parameters<DigestInputs>): InputDigest {
  const [content, { reads, generation }, force] = of;
  let text = `${generation} ${force ?? '-'}`;
  for (const read of reads) text += ` ${read}=${textAt(content, read)}`;
  const known = byText.get(text);
  if (known) return known;
  if (byText.size > mostKnown) {
    byText.clear();
    textOf.clear();
  }
  const digest = digestInputs(...of);
  const other = textOf.get(digest.digest);
  hold(other === undefined, 'I10: other inputs have another digest', () => `${text} and ${other}`);
  byText.set(text, digest);
  textOf.set(digest.digest, text);
  return digest;
}

/** Plain paths without an escape, as simulated components read. */
function textAt(content: EntryContent, path: JsonPointer): string | undefined {
  let segments = segmentsOf.get(path);
  if (!segments) {
    segments = path.slice(1).split('/');
    segmentsOf.set(path, segments);
  }
  let value: unknown = content;
  for (const segment of segments) value = (value as Readonly<Record<string, unknown>> | undefined)?.[segment];
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
