import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreHandle, StoreSpec } from '../../kube/store.ts';

/** Stores that were opened together and are released together. */
export interface OpenedStores<Stores> {
  readonly stores: Stores;
  readonly all: readonly Store<Projected>[];
  /** Resolves when all are synced; rejects when one is closed or `signal` aborts first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  release(): void;
}

type Open = <T extends Projected>(spec: StoreSpec<T>) => Store<T>;

export function openStores<Stores>(cluster: Cluster, openAll: (open: Open) => Stores): OpenedStores<Stores> {
  const handles: StoreHandle<Projected>[] = [];
  const stores = openAll((spec) => {
    const handle = cluster.watch(spec);
    handles.push(handle as unknown as StoreHandle<Projected>);
    return handle.store;
  });
  const all = handles.map(({ store }) => store);
  return {
    stores,
    all,
    async whenSynced(signal) {
      await Promise.all(all.map((store) => store.whenSynced(signal)));
    },
    release() {
      for (const handle of handles) handle.release();
    },
  };
}
