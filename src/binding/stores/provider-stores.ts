import type { Store } from '../../kube/store.ts';
import type {
  BoundSchemaView,
  ClusterBindingView,
  ExportRequestView,
  ExportView,
  ServiceNamespaceView,
} from './views.ts';

/** What a session watches in its cluster namespace of the provider. Keys are `namespace/name`. */
export interface ProviderStores {
  readonly exports: Store<ExportView>;
  readonly schemas: Store<BoundSchemaView>;
  readonly serviceNamespaces: Store<ServiceNamespaceView>;
  readonly clusterBindings: Store<ClusterBindingView>;
  readonly exportRequests: Store<ExportRequestView>;
}

/** Index of the store of exports: `<resource>.<group>`, the name of the BoundSchema; the core group is called `core`. */
export const bySchema = 'schema';
/** Index of the store of APIServiceNamespaces: the namespace of the provider that it stands for. */
export const byServiceNamespace = 'serviceNamespace';
