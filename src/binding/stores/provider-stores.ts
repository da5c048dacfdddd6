import { readApiServiceExport } from '../../api/binding/api-service-export.ts';
import { readApiServiceExportRequest } from '../../api/binding/api-service-export-request.ts';
import { readApiServiceNamespace } from '../../api/binding/api-service-namespace.ts';
import { readBoundSchema } from '../../api/binding/bound-schema.ts';
import { readClusterBinding } from '../../api/binding/cluster-binding.ts';
import { boundSchemaName } from '../../api/binding/group-resource.ts';
import {
  apiServiceExportRequests,
  apiServiceExports,
  apiServiceNamespaces,
  boundSchemas,
  clusterBindings,
} from '../../api/binding/names.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store } from '../../kube/store.ts';
import { type Log, noLog } from '../../observe/log.ts';
import { boundSchemaView } from './bound-schema-view.ts';
import { clusterBindingView } from './cluster-binding-view.ts';
import { blankExport, exportRequestView, exportView } from './export-views.ts';
import { type OpenedStores, openStores } from './open-stores.ts';
import { project } from './project.ts';
import { serviceNamespaceView } from './service-namespace-view.ts';
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

export function openProviderStores(
  cluster: Cluster,
  clusterNamespace: string,
  log: Log = noLog,
): OpenedStores<ProviderStores> {
  const namespace = clusterNamespace;
  return openStores(cluster, (open) => ({
    exports: open({
      resource: apiServiceExports,
      namespace,
      project: project(readApiServiceExport, exportView, log, blankExport),
      indexes: { [bySchema]: ({ resources }: ExportView) => resources.map(boundSchemaName) },
    }),
    schemas: open({ resource: boundSchemas, namespace, project: project(readBoundSchema, boundSchemaView, log) }),
    serviceNamespaces: open({
      resource: apiServiceNamespaces,
      namespace,
      project: project(readApiServiceNamespace, serviceNamespaceView, log),
      indexes: {
        [byServiceNamespace]: ({ serviceNamespace }: ServiceNamespaceView) =>
          serviceNamespace === undefined ? [] : [serviceNamespace],
      },
    }),
    clusterBindings: open({
      resource: clusterBindings,
      namespace,
      project: project(readClusterBinding, clusterBindingView, log),
    }),
    exportRequests: open({
      resource: apiServiceExportRequests,
      namespace,
      project: project(readApiServiceExportRequest, exportRequestView, log),
    }),
  }));
}
