import type { Subscribable } from '../../engine/sources/from-subscription.ts';
import type { Entry, EntryRef } from '../entry.ts';

export type EntryChange =
  | { readonly kind: 'changed'; readonly entry: Entry; readonly before: Entry | undefined }
  | { readonly kind: 'gone'; readonly entry: Entry };

/** The entries, wherever they are kept. Rejects as the client of kube/ does: ApiError, TransportError. */
export interface InventoryStore extends Required<Subscribable<EntryChange>> {
  /** As last watched. */
  find(uid: string): Entry | undefined;
  list(): Iterable<Entry>;
  /** The latest, read live; undefined when it is gone or another one has its name. */
  get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined>;
  /**
   * A merge patch, refused with Conflict when `ref.uid` is not the one there, or `resourceVersion` is given and another is stored.
   * Part `status` is the subresource.
   */
  patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    options: { readonly resourceVersion?: string; readonly signal: AbortSignal },
  ): Promise<Entry>;
}
