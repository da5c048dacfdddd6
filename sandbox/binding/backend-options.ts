import type { InformerScope, IsolationName } from '../../src/binding/stores/provider-stores.ts';

export interface BackendOptions {
  /** Name of the cluster namespace. */
  readonly clusterNamespace: string;
  readonly isolation: IsolationName;
  readonly informerScope: InformerScope;
  /** Where the konnector is to reach the provider, when not directly. */
  readonly server?: string;
}
