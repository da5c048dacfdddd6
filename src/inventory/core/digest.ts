import type { MissingInput } from '../../api/inventory/fields.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { isPointer, overlap, valueAt } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';
import type { Registration } from '../registration.ts';

/** `canonicalJson` is recursive. */
const maxDepth = 64;

/**
 * SHA-256, lowercase hex, of the values at `reads`, the generation of the registration, and the
 * force annotation; not of labels, suspension, or other awaited inputs. A missing value differs
 * from null. Values nested deeper than 64 levels share one digest.
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
 * Components that count for `noReaders`: those that apply, even if disabled; during a deletion,
 * those that still have a record.
 */
export type EntryReaders = readonly Pick<Registration, 'reads'>[];

export const allHold = (missing: readonly MissingInput[], content: EntryContent, readers: EntryReaders): boolean =>
  missing.every((input) => holds(input, content, readers));

function holds({ path, want, value }: MissingInput, content: EntryContent, readers: EntryReaders): boolean {
  // A component reported the path, so it is untrusted; an invalid one never holds.
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
