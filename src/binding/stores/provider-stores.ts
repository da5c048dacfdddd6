import { type ApiServiceExport, apiServiceExportKind } from '../../api/binding/api-service-export.ts';
import {
  type ApiServiceExportRequest,
  apiServiceExportRequestKind,
} from '../../api/binding/api-service-export-request.ts';
import { type ApiServiceNamespace, apiServiceNamespaceKind } from '../../api/binding/api-service-namespace.ts';
import { type BoundSchema, boundSchemaKind } from '../../api/binding/bound-schema.ts';
import { type ClusterBinding, clusterBindingKind } from '../../api/binding/cluster-binding.ts';
import { type BindCondition, readBindConditions } from '../../api/binding/condition.ts';
import { boundSchemaName } from '../../api/binding/group-resource.ts';
import {
  apiServiceExportRequests,
  apiServiceExports,
  apiServiceNamespaces,
  boundSchemas,
  clusterBindings,
  type Owner,
  ownerLabel,
} from '../../api/binding/names.ts';
import type { PermissionClaim } from '../../api/binding/permission-claim.ts';
import { isRecord, own, strings } from '../../kit/json-value.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { text } from '../../kube/fields.ts';
import type { Store } from '../../kube/store.ts';
import { type Log, noLog } from '../../observe/log.ts';
import type { CommonView } from './common-view.ts';
import { type OpenedStores, openStores, projection, type ViewBuilder } from './open-stores.ts';

type ExportSpec = ApiServiceExport['spec'];
/** @testing */
export type InformerScope = ExportSpec['informerScope'];
export type IsolationName = ExportSpec['isolation'];
type SchemaSpec = BoundSchema['spec'];
type SchemaVersion = SchemaSpec['versions'][number];

/** Absent fields of the spec have the defaults of the schema. */
export interface ExportView extends CommonView, Pick<ExportSpec, 'informerScope' | 'isolation'> {
  readonly namespace: string;
  /** `versions`: empty if the export names none. */
  readonly resources: readonly Required<ExportSpec['resources'][number]>[];
  readonly permissionClaims: readonly PermissionClaim[];
  readonly conditions: readonly BindCondition[];
}

/** The provider's description of a kind to bind. */
export interface BoundSchemaView extends CommonView, Pick<SchemaSpec, 'informerScope' | 'group' | 'names' | 'scope'> {
  readonly namespace: string;
  readonly versions: readonly BoundVersion[];
  /** Not copied into the CRD; its `strategy` decides which versions are served (`boundCrd`). */
  readonly conversion: unknown;
  readonly conditions: readonly BindCondition[];
  /** From the status, not validated. */
  readonly acceptedNames: unknown;
  readonly storedVersions: readonly string[];
}

export interface BoundVersion extends Omit<SchemaVersion, 'schema' | 'subresources' | 'additionalPrinterColumns'> {
  /** Without its `openAPIV3Schema` wrapper. */
  readonly schema: unknown;
  /** Not validated here. */
  readonly subresources: { readonly status?: unknown; readonly scale?: unknown };
  readonly additionalPrinterColumns: readonly unknown[];
}

/** Maps a consumer namespace to its service namespace in the provider. */
export interface ServiceNamespaceView extends CommonView {
  readonly namespace: string;
  readonly serviceNamespace: string | undefined;
  /** From a valid owner label. */
  readonly owner: Owner | undefined;
}

/** Takes the konnector's heartbeat, and names the provider's Secret for this consumer. */
export interface ClusterBindingView extends CommonView, Pick<ClusterBinding['spec'], 'providerPrettyName'> {
  readonly namespace: string;
  readonly secretRef: ClusterBinding['spec']['kubeconfigSecretRef'];
  /** RFC 3339, not validated. */
  readonly lastHeartbeatTime: string | undefined;
  /** A Go duration, not validated. */
  readonly heartbeatInterval: string | undefined;
  readonly konnectorVersion: string | undefined;
  readonly consumerSecretRef: NonNullable<ClusterBinding['status']>['consumerSecretRef'] | undefined;
  readonly conditions: readonly BindCondition[];
}

/** `kubectl bind` creates it to ask the provider for an export. */
export interface ExportRequestView extends CommonView {
  readonly namespace: string;
  /** `Pending` also if the status has no known phase. */
  readonly phase: NonNullable<ApiServiceExportRequest['status']>['phase'];
  readonly terminalMessage: string;
}

/** Of a session's cluster namespace. Keys are `namespace/name`. */
export interface ProviderStores {
  readonly exports: Store<ExportView>;
  readonly schemas: Store<BoundSchemaView>;
  readonly serviceNamespaces: Store<ServiceNamespaceView>;
  readonly clusterBindings: Store<ClusterBindingView>;
  readonly exportRequests: Store<ExportRequestView>;
}

/** By name of the BoundSchema: `<resource>.<group>`, with `core` for the core group. */
export const bySchema = 'schema';
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
      project: projection(apiServiceExportKind, exportView, log, blankExport),
      indexes: { [bySchema]: ({ resources }: ExportView) => resources.map(boundSchemaName) },
    }),
    schemas: open({ resource: boundSchemas, namespace, project: projection(boundSchemaKind, boundSchemaView, log) }),
    serviceNamespaces: open({
      resource: apiServiceNamespaces,
      namespace,
      project: projection(apiServiceNamespaceKind, serviceNamespaceView, log),
      indexes: {
        [byServiceNamespace]: ({ serviceNamespace }: ServiceNamespaceView) =>
          serviceNamespace === undefined ? [] : [serviceNamespace],
      },
    }),
    clusterBindings: open({
      resource: clusterBindings,
      namespace,
      project: projection(clusterBindingKind, clusterBindingView, log),
    }),
    exportRequests: open({
      resource: apiServiceExportRequests,
      namespace,
      project: projection(apiServiceExportRequestKind, exportRequestView, log),
    }),
  }));
}

const exportView: ViewBuilder<ExportSpec, ExportView> = (common, spec, { metadata, status }) => ({
  ...common,
  namespace: metadata.namespace ?? '',
  resources: spec.resources.map(({ group, resource, versions = [] }) => ({ group, resource, versions })),
  permissionClaims: spec.permissionClaims ?? [],
  informerScope: spec.informerScope,
  isolation: spec.isolation,
  conditions: readBindConditions(status),
});

const blankExport: ExportSpec = { resources: [], informerScope: 'Namespaced', isolation: 'None' };

const exportRequestView: ViewBuilder<ApiServiceExportRequest['spec'], ExportRequestView> = (
  common,
  _spec,
  { metadata, status },
) => {
  const phase = own(status, 'phase');
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    phase: phase === 'Failed' || phase === 'Succeeded' ? phase : 'Pending',
    terminalMessage: text(status, 'terminalMessage') ?? '',
  };
};

const boundSchemaView: ViewBuilder<SchemaSpec, BoundSchemaView> = (common, spec, { metadata, status }) => ({
  ...common,
  namespace: metadata.namespace ?? '',
  informerScope: spec.informerScope,
  group: spec.group,
  names: spec.names,
  scope: spec.scope,
  versions: spec.versions.map(boundVersion),
  conversion: spec.conversion,
  conditions: readBindConditions(status),
  acceptedNames: own(status, 'acceptedNames'),
  storedVersions: strings(own(status, 'storedVersions')),
});

function boundVersion({ schema, subresources, additionalPrinterColumns, ...version }: SchemaVersion): BoundVersion {
  const wrapped = own(schema, 'openAPIV3Schema');
  return {
    ...version,
    schema: isRecord(wrapped) ? wrapped : schema,
    subresources: subresources ?? {},
    additionalPrinterColumns: additionalPrinterColumns ?? [],
  };
}

const serviceNamespaceView: ViewBuilder<ApiServiceNamespace['spec'], ServiceNamespaceView> = (
  common,
  _spec,
  { metadata, status },
) => {
  const owner = common.labels[ownerLabel];
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    serviceNamespace: text(status, 'namespace'),
    owner: owner === 'provider' || owner === 'consumer' ? owner : undefined,
  };
};

export const clusterBindingView: ViewBuilder<ClusterBinding['spec'], ClusterBindingView> = (
  common,
  spec,
  { metadata, status },
) => {
  const consumer = own(status, 'consumerSecretRef');
  const name = text(consumer, 'name');
  const namespace = text(consumer, 'namespace');
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    secretRef: spec.kubeconfigSecretRef,
    providerPrettyName: spec.providerPrettyName,
    lastHeartbeatTime: text(status, 'lastHeartbeatTime'),
    heartbeatInterval: text(status, 'heartbeatInterval'),
    konnectorVersion: text(status, 'konnectorVersion'),
    consumerSecretRef: name && namespace ? { namespace, name } : undefined,
    conditions: readBindConditions(status),
  };
};
