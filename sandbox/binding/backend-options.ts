import type { InformerScope, IsolationName } from '../../src/binding/stores/provider-stores.ts';

export interface BackendOptions {
  /** Name of the cluster namespace. */
  readonly clusterNamespace: string;
  readonly isolation: IsolationName;
  readonly informerScope: InformerScope;
  /** URL of the provider for the konnector. Default: the provider's own. */
  readonly server?: string;
  /** The name in the provider's certificate, if it is not the host of that URL. */
  readonly tlsServerName?: string;
}
