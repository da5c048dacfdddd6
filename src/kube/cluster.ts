import type { Client } from './client.ts';
import type { Projected, StoreHandle, StoreSpec } from './store.ts';

/** One cluster as seen with one set of credentials: its client, its connection pool, its stores. */
export interface Cluster {
  readonly client: Client;
  /** Opens or shares the store of `spec`; equal resource, namespace, selectors and projection function share one watch. */
  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T>;
  /** uid of the `kube-system` Namespace (or another one that the credentials can read): tells clusters apart. */
  identity(namespace?: string): Promise<string>;
  /** Ends every watch, waits for calls in flight to settle and closes the connections. */
  close(): Promise<void>;
}
