import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { EntryRef } from '../entry.ts';
import { type Watched, watchSpec, watchText } from './watch-spec.ts';

type OnChange = (entryUid: string, watch: RemoteWatch) => void;

/** A watch that is shared by entries. */
interface OpenWatch {
  /** Namespaces of the entries that want this watch, by UID. */
  readonly wantedBy: Map<string, string>;
  readonly close: () => void;
}

/**
 * Watches of the management cluster, shared by all entries. A label on an object names its entry. Users may set that label on objects in
 * their namespaces, so an object in another namespace counts only if the registration names that namespace. A cluster-scoped object counts
 * for the entry that its label names, wherever that entry is.
 */
export class ManagementWatches {
  readonly #cluster: Cluster;
  readonly #onChange: OnChange;
  readonly #open = new Map<string, OpenWatch>();

  constructor(cluster: Cluster, onChange: OnChange) {
    this.#cluster = cluster;
    this.#onChange = onChange;
  }

  /** Replaces the watches of the entry. Closes watches that no entry wants any more. */
  setWatches({ uid, namespace }: EntryRef, watches: readonly RemoteWatch[]): void {
    const wanted = new Map(watches.map((watch) => [watchText(watch), watch]));
    for (const [text, { wantedBy, close }] of [...this.#open]) {
      if (wanted.has(text) || !wantedBy.delete(uid) || wantedBy.size > 0) continue;
      this.#open.delete(text);
      close();
    }
    for (const [text, watch] of wanted) {
      const open = this.#open.get(text) ?? this.#start(watch);
      this.#open.set(text, open);
      open.wantedBy.set(uid, namespace);
    }
  }

  /** Closes all watches. */
  close(): void {
    for (const { close } of this.#open.values()) close();
    this.#open.clear();
  }

  #start(watch: RemoteWatch): OpenWatch {
    const wantedBy = new Map<string, string>();
    const { store, release } = this.#cluster.watch(watchSpec(watch));
    const report = (entryUid: string, objectNamespace: string): void => {
      const entryNamespace = wantedBy.get(entryUid);
      if (entryNamespace === undefined) return;
      // Only administrators create cluster-scoped objects, so their labels may name any entry.
      const isClusterScoped = objectNamespace === '';
      if (isClusterScoped || objectNamespace === entryNamespace || watch.namespace !== undefined)
        this.#onChange(entryUid, watch);
    };
    const unsubscribe = store.subscribe((event) => {
      // Objects of the initial list are not changes.
      if (!store.synced && event.type === 'added') return;
      for (const entryUid of entriesOf(event)) report(entryUid, namespaceOf(event.key));
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

/** UIDs of the entries that an event concerns; empty if the relevant fields are unchanged. */
function entriesOf(event: StoreEvent<Watched>): ReadonlySet<string> {
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

const namespaceOf = (key: string): string => key.slice(0, Math.max(0, key.indexOf('/')));
