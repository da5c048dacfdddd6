import type { MissingInput } from '../../api/inventory/fields.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { isPointer, type JsonPointer, overlap, valueAt } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';
import type { Registration } from '../registration.ts';

/** Maximum nesting depth of a digested value, because `canonicalJson` is recursive. */
const maxDepth = 64;

/**
 * Digest of the inputs of a run, as SHA-256 in lowercase hex. It covers the values at `reads`, the generation of the registration, and the
 * value of the component's force annotation. It does not cover labels, suspension, or awaited inputs that are not in `reads`. A missing
 * value and null have different digests. All values nested more than 64 levels deep share one digest.
 */
export function digestInputs(
  content: EntryContent,
  { reads, generation }: Pick<Registration, 'reads' | 'generation'>,
  force: string | undefined,
): string {
  const parts = [...new Set(reads)].sort().map((path) => [path, digestOf(valueAt(content, path))]);
  return sha256Hex(canonicalJson([generation, force === undefined ? [] : [force], ...parts]));
}

// These texts are not JSON, so no value shares their digests.
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

/**
 * Reads of the components that count for `noReaders`: the registered components that apply to the entry, even if disabled. While the entry
 * is being deleted: the registered components that still have a run record.
 */
export type EntryReaders = readonly { readonly component: string; readonly reads: readonly JsonPointer[] }[];

/** Whether every input in `missing` holds in this version of the entry. True for an empty list. */
export const allHold = (missing: readonly MissingInput[], content: EntryContent, readers: EntryReaders): boolean =>
  missing.every((input) => holds(input, content, readers));

function holds({ path, want, value }: MissingInput, content: EntryContent, readers: EntryReaders): boolean {
  // A component reported the path, so it is untrusted. An input with an invalid path never holds.
  if (!isPointer(path)) return false;
  const found = valueAt(content, path);
  switch (want) {
    case 'present':
      return found !== undefined && found !== null;
    case 'absent':
      return found === undefined || found === null;
    case 'equals':
      return found !== undefined && digestOf(found) === digestOf(value ?? null);
    case 'noReaders':
      return !readers.some(({ reads }) => reads.some((read) => overlap(read, path)));
  }
}
