import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { nameOf } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { EntryRef } from '../entry.ts';
import { type WatchedObject, watchKey, watchSpec } from './watch-spec.ts';

/** The entry that a change may concern, and the watch that showed it. */
type OnChange = (entryUid: string, watch: RemoteWatch) => void;

/** Shared by the entries that want it. */
interface SharedWatch {
  /** Namespaces of entries, by their UID. */
  readonly wantedBy: Map<string, string>;
  readonly close: () => void;
}

/**
 * Watches of the management cluster, shared by all entries. A label names an object's entry. Users
 * may set it in their namespaces, so an object in another namespace than the entry's counts only if
 * the registration names that namespace. A cluster-scoped object always counts.
 */
export class ManagementWatches {
  readonly #cluster: Cluster;
  readonly #onChange: OnChange;
  readonly #open = new Map<string, SharedWatch>();

  /** `onChange` is called synchronously, not for a first list, unless the kind came later. */
  constructor(cluster: Cluster, onChange: OnChange) {
    this.#cluster = cluster;
    this.#onChange = onChange;
  }

  /** Replaces the watches of the entry, all with cluster `management`. Closes unwanted ones. */
  setWatches({ uid, namespace }: EntryRef, watches: readonly RemoteWatch[]): void {
    const wanted = new Map(watches.map((watch) => [watchKey(watch), watch]));
    for (const [key, { wantedBy, close }] of [...this.#open]) {
      if (wanted.has(key)) continue;
      wantedBy.delete(uid);
      if (wantedBy.size > 0) continue;
      this.#open.delete(key);
      close();
    }
    for (const [key, watch] of wanted) {
      const open = this.#open.get(key) ?? this.#start(watch);
      this.#open.set(key, open);
      // After the subscription, which reports the objects that the store already has.
      open.wantedBy.set(uid, namespace);
    }
  }

  close(): void {
    for (const { close } of this.#open.values()) close();
    this.#open.clear();
  }

  #start(watch: RemoteWatch): SharedWatch {
    const wantedBy = new Map<string, string>();
    const { store, release } = this.#cluster.watch(watchSpec(watch));
    const reportIfAllowed = (entryUid: string, objectNamespace: string | undefined): void => {
      const entryNamespace = wantedBy.get(entryUid);
      if (entryNamespace === undefined) return;
      // Creating such objects needs cluster-wide permissions, so their labels may name any entry.
      const isClusterScoped = objectNamespace === undefined;
      const isInEntryNamespace = objectNamespace === entryNamespace;
      const isNamespaceRegistered = watch.namespace !== undefined;
      if (isClusterScoped || isInEntryNamespace || isNamespaceRegistered) this.#onChange(entryUid, watch);
    };
    const unsubscribe = store.subscribe((event) => {
      // The first list is no change. The store counts as synced while the kind is not installed.
      if (!store.synced && event.type === 'added') return;
      for (const entryUid of entriesOf(event)) reportIfAllowed(entryUid, nameOf(event.key).namespace);
    });
    return {
      wantedBy,
      close: () => {
        unsubscribe();
        release();
      },
    };
  }
}

/** Entries that an event concerns: none if neither the label nor the selected part changed. */
function entriesOf(event: StoreEvent<WatchedObject>): ReadonlySet<string> {
  switch (event.type) {
    case 'added':
      return new Set([event.now.entryUid]);
    case 'deleted':
      return new Set([event.before.entryUid]);
    case 'updated':
      if (event.before.digest === event.now.digest && event.before.entryUid === event.now.entryUid) return new Set();
      return new Set([event.before.entryUid, event.now.entryUid]);
  }
}
