import type { MissingInput } from '../../api/inventory/fields.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { isPointer, type JsonPointer, overlap, valueAt } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';
import type { Registration } from '../registration.ts';

/** Deeper than anything that people write; canonical JSON is made by recursion. */
const maxDepth = 64;

/**
 * What a run depends on, in short: SHA-256 of the canonical JSON of the values at `reads`, the registration's generation and the value of
 * the component's force annotation; lower-case hex. A path without a value is told apart from one that holds null; values that are
 * nested more than 64 levels deep are not told apart from one another.
 */
export function digestInputs(
  content: EntryContent,
  { reads, generation }: Pick<Registration, 'reads' | 'generation'>,
  force: string | undefined,
): string {
  const parts = [...new Set(reads)].sort().map((path) => [path, digestOf(valueAt(content, path))]);
  return sha256Hex(canonicalJson([generation, force === undefined ? [] : [force], ...parts]));
}

// No JSON text, so no value's digest.
const absent = sha256Hex('absent');
const tooDeep = sha256Hex('too deep');

function digestOf(value: unknown): string {
  if (value === undefined) return absent;
  return isWithinDepth(value, maxDepth) ? sha256Hex(canonicalJson(value)) : tooDeep;
}

function isWithinDepth(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isWithinDepth(item, levels - 1));
}

/** The reads of those components that still are there for an entry: registered, applicable and, while it goes, not yet Deleted. */
export type PresentReads = readonly { readonly component: string; readonly reads: readonly JsonPointer[] }[];

/** Whether all of `missing` is there in this version of the entry. Nothing missing: true. */
export const allHold = (missing: readonly MissingInput[], content: EntryContent, present: PresentReads): boolean =>
  missing.every((input) => holds(input, content, present));

function holds({ path, want, value }: MissingInput, content: EntryContent, present: PresentReads): boolean {
  // Hostile, though its reader has checked it: what is no path never comes true.
  if (!isPointer(path)) return false;
  const found = valueAt(content, path);
  switch (want) {
    case 'present':
      return found !== undefined && found !== null;
    case 'absent':
      return found === undefined || found === null;
    case 'equals':
      return found !== undefined && canonicalJson(found) === canonicalJson(value);
    case 'noReaders':
      return !present.some(({ reads }) => reads.some((read) => overlap(read, path)));
  }
}
