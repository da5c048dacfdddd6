import type { Client } from './client.ts';
import type { Projected, StoreHandle, StoreSpec } from './store.ts';

/** One cluster, accessed with one set of credentials: its client, its connections, and its stores. */
export interface Cluster {
  readonly client: Client;
  /**
   * Opens or shares the store of `spec`. Specs share a store if only `indexes`, `maxObjects`, and `onRelist` differ, and no index name
   * belongs to two functions. The first opener's `maxObjects` and `onRelist` apply. Throws CodedError `ClusterClosed` after `close`.
   */
  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T>;
  /** uid of `namespace` (default `kube-system`), which identifies the cluster. Reads it at each call; rejects like `Client.get`. */
  identity(namespace?: string): Promise<string>;
  /** Ends every watch, waits up to 4 s for calls in flight, and closes the connections. Calls that take longer reject. */
  close(): Promise<void>;
}
