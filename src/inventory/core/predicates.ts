import type { MissingInput } from '../../api/inventory/fields.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { isPointer, type JsonPointer, overlap, valueAt } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';

/** The reads of those components that still are there for an entry: registered, applicable and, while it goes, not yet Deleted. */
export type PresentReads = readonly { readonly component: string; readonly reads: readonly JsonPointer[] }[];

/** Pure. Whether all of `missing` is there in this version of the entry. Nothing missing: true. */
export type AllHold = (missing: readonly MissingInput[], content: EntryContent, present: PresentReads) => boolean;

export const allHold: AllHold = (missing, content, present) => missing.every((input) => holds(input, content, present));

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
