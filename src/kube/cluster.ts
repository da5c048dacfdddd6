import type { Client } from './client.ts';
import type { Projected, StoreHandle, StoreSpec } from './store.ts';

/** One cluster, accessed with one set of credentials. */
export interface Cluster {
  readonly client: Client;
  /**
   * Specs that differ only in `indexes`, `maxObjects`, or `onRelist` share a store, with the last
   * two of the first opener. Throws CodedError `ClusterClosed` after `close`.
   */
  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T>;
  /** uid of the namespace (default `kube-system`), which identifies the cluster. Never cached. */
  identity(namespace?: string): Promise<string>;
  /** Ends watches at once, and calls after at most 4 s. */
  close(): Promise<void>;
}
