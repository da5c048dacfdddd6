import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { Watched } from './projections.ts';
import { watchSpec, watchText } from './watch-spec.ts';

type Changed = (entryUid: string, watch: RemoteWatch) => void;

interface Open {
  readonly wantedBy: Set<string>;
  readonly close: () => void;
}

/** Watches of the management cluster: one for all entries, whose objects say by their label which one they belong to. */
export class ManagementWatches {
  readonly #cluster: Cluster;
  readonly #changed: Changed;
  readonly #open = new Map<string, Open>();

  constructor(cluster: Cluster, changed: Changed) {
    this.#cluster = cluster;
    this.#changed = changed;
  }

  /** From now on exactly these for the entry. */
  want(entryUid: string, watches: readonly RemoteWatch[]): void {
    const wanted = new Map(watches.map((watch) => [watchText(watch), watch]));
    for (const [text, { wantedBy, close }] of [...this.#open]) {
      if (wanted.has(text) || !wantedBy.delete(entryUid) || wantedBy.size > 0) continue;
      this.#open.delete(text);
      close();
    }
    for (const [text, watch] of wanted) {
      const open = this.#open.get(text) ?? this.#start(watch);
      this.#open.set(text, open);
      open.wantedBy.add(entryUid);
    }
  }

  close(): void {
    for (const { close } of this.#open.values()) close();
    this.#open.clear();
  }

  #start(watch: RemoteWatch): Open {
    const wantedBy = new Set<string>();
    const { store, release } = this.#cluster.watch(watchSpec(watch));
    const tell = (entryUid: string): void => {
      if (wantedBy.has(entryUid)) this.#changed(entryUid, watch);
    };
    const unsubscribe = store.subscribe((event) => {
      // What was there before anybody watched is no news.
      if (!store.synced && event.type === 'added') return;
      for (const entryUid of ownersOf(event)) tell(entryUid);
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

function ownersOf(event: StoreEvent<Watched>): ReadonlySet<string> {
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
