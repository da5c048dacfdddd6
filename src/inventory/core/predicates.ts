import type { MissingInput } from '../../api/inventory/missing.ts';
import type { JsonPointer } from '../../kit/json-pointer.ts';
import type { EntryContent } from '../entry.ts';

/** The reads of those components that still are there for an entry: registered, applicable and, while it goes, not yet Deleted. */
export type PresentReads = readonly { readonly component: string; readonly reads: readonly JsonPointer[] }[];

/** Pure. Whether all of `missing` is there in this version of the entry. Nothing missing: true. */
export type AllHold = (missing: readonly MissingInput[], content: EntryContent, present: PresentReads) => boolean;
