import type { Client } from './client.ts';
import type { Projected, StoreHandle, StoreSpec } from './store.ts';

/** One cluster, accessed with one set of credentials: its client, its connections, and its stores. */
export interface Cluster {
  readonly client: Client;
  /** Opens or shares the store of `spec`. Equal resources, namespaces, selectors, and projections share one watch. */
  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T>;
  /** uid of `namespace` (default `kube-system`), which identifies the cluster. */
  identity(namespace?: string): Promise<string>;
  /** Ends every watch, waits until calls in flight have settled, and closes the connections. */
  close(): Promise<void>;
}
