import { clusterInventories } from '../../api/inventory/names.ts';
import type { KubeObject } from '../../api/object.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Store, StoreEvent } from '../../kube/store.ts';
import type { Entry, EntryRef } from '../entry.ts';
import type { EntryChange, InventoryStore } from '../ports/inventory-store.ts';
import { type EntryView, entryView } from './entry-view.ts';

/** The entries, as custom resources. */
export class KubeInventoryStore implements InventoryStore {
  readonly #client: Client;
  readonly #store: Store<EntryView>;
  readonly #byUid = new Map<string, EntryView>();

  /** `client` writes, `store` is what is watched with `entryView`. */
  constructor(client: Client, store: Store<EntryView>) {
    this.#client = client;
    this.#store = store;
    // The first of all listeners: whoever is told of a change finds it.
    store.subscribe((event) => {
      if (event.type === 'deleted') this.#byUid.delete(event.before.uid);
      else this.#byUid.set(event.now.uid, event.now);
    });
  }

  find(uid: string): Entry | undefined {
    return this.#byUid.get(uid);
  }

  list(): Iterable<Entry> {
    return this.#byUid.values();
  }

  subscribe(listener: (change: EntryChange) => void): () => void {
    return this.#store.subscribe((event) => listener(changeOf(event)));
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    return this.#store.whenSynced(signal);
  }

  async get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined> {
    try {
      const view = entryView(await this.#client.get(clusterInventories, ref, { signal }));
      return view?.uid === ref.uid ? view : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    { resourceVersion, signal }: { readonly resourceVersion?: string; readonly signal: AbortSignal },
  ): Promise<Entry> {
    const metadata = { uid: ref.uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
    const body = part === 'status' ? { ...patch, metadata } : { metadata: { ...own(patch), ...metadata } };
    const options = { signal, ...(part === 'status' ? { subresource: 'status' } : {}) };
    return readable(await this.#client.mergePatch(clusterInventories, ref, body, options));
  }
}

/** Of a patch of metadata. */
function own(patch: Readonly<Record<string, unknown>>): object {
  const { metadata } = patch;
  return typeof metadata === 'object' && metadata !== null ? metadata : {};
}

/** No outage: the write has happened, and repeating it would not make the answer any better. */
function readable(object: KubeObject): Entry {
  const view = entryView(object);
  if (view) return view;
  throw new Error(`entry ${object.metadata.name}: the answer is not a ClusterInventory`);
}

function changeOf(event: StoreEvent<EntryView>): EntryChange {
  if (event.type === 'deleted') return { kind: 'gone', entry: event.before };
  return { kind: 'changed', entry: event.now, before: event.type === 'updated' ? event.before : undefined };
}
