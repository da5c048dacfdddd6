import type { Subscribable } from '../../engine/sources/from-subscription.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { ComponentKey } from '../key.ts';

export type RecordChange =
  | { readonly kind: 'changed'; readonly stored: StoredRecord }
  | { readonly kind: 'gone'; readonly key: ComponentKey };

export type Swap =
  | { readonly kind: 'stored'; readonly stored: StoredRecord }
  /** It is not what it was taken for; undefined: it is gone. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined };

/** The records, one a key. Rejects as the client of kube/ does. */
export interface RunStore extends Required<Subscribable<RecordChange>> {
  /** As last watched or written by us, whichever is later; its history may be left out. */
  find(key: ComponentKey): StoredRecord | undefined;
  list(): Iterable<StoredRecord>;
  load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  /** Compare and swap: creates when `base` is undefined. Of several writers with one base, one is `stored`. */
  swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap>;
  /** Gone already counts as removed. */
  remove(stored: StoredRecord, signal: AbortSignal): Promise<void>;
}
