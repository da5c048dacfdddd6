import type { Resource } from '../object.ts';

/**
 * API group of kube-bind. This file also has the resources, labels, annotations, and conditions of kube-bind's API. Only names that
 * begin with `binding.drawbridge.dev/` are additions of drawbridge.
 */
export const bindGroup = 'kube-bind.io';
export const bindVersion = 'v1alpha2';

const resource = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: bindGroup,
  version: bindVersion,
  plural,
  kind,
  namespaced,
});

/** The resources in the consumer cluster. */
export const apiServiceBindings = resource('apiservicebindings', 'APIServiceBinding', false);
export const apiServiceBindingBundles = resource('apiservicebindingbundles', 'APIServiceBindingBundle', false);
/** The resources in the cluster namespace: the namespace of the provider cluster that the provider reserves for one consumer. */
export const apiServiceExports = resource('apiserviceexports', 'APIServiceExport', true);
export const apiServiceExportRequests = resource('apiserviceexportrequests', 'APIServiceExportRequest', true);
export const apiServiceNamespaces = resource('apiservicenamespaces', 'APIServiceNamespace', true);
export const boundSchemas = resource('boundschemas', 'BoundSchema', true);
export const clusterBindings = resource('clusterbindings', 'ClusterBinding', true);

/** Name of the only ClusterBinding of a cluster namespace. */
export const clusterBindingName = 'cluster';

/** Finalizer of bound objects that have a copy in the provider. Only here, kube-bind writes its domain without a dash. */
export const syncerFinalizer = 'kubebind.io/syncer';
/** Field manager of copies, of claimed originals, and of the status of exports and BoundSchemas. */
export const bindFieldManager = 'kube-bind.io';

/** On provider copies of bound objects: the cluster namespace of their consumer. */
export const clusterNamespaceAnnotation = 'kube-bind.io/cluster-namespace';
/** On provider copies: the namespace of the consumer object; empty if it is cluster-scoped. */
export const consumerNamespaceAnnotation = 'kube-bind.io/consumer-namespace';
/** On provider copies: the uid of the consumer object. */
export const consumerUidAnnotation = 'kube-bind.io/consumer-uid';
/**
 * On provider copies: the consumer object, as `<uid>/<namespace>/<name>`, or `<uid>/<name>` if it is cluster-scoped. The uid is that of the
 * APIServiceBinding or, for claimed objects, the uid of the consumer's `kube-system` Namespace. After the consumer object is deleted, this
 * annotation proves that the server may delete the copy. A copy from another cluster or from an earlier binding has another value or none.
 */
export const copyOfAnnotation = 'binding.drawbridge.dev/copy-of';
/** On bound objects, and on copies of claimed objects that the provider owns: the namespace of the provider object; empty without one. */
export const providerNamespaceAnnotation = 'kube-bind.io/provider-namespace';
/** On objects with `providerNamespaceAnnotation`: the uid of the provider object. */
export const providerUidAnnotation = 'kube-bind.io/provider-uid';
/** On consumer copies of claimed objects that the provider owns: the uid of the cluster namespace, which distinguishes providers. */
export const providerIdentityAnnotation = 'binding.drawbridge.dev/provider';
/** On BoundSchemas, written by kube-bind's backend: a hash of the schema. Only tests use it. @testing */
export const sourceSpecHashAnnotation = 'kube-bind.io/source-spec-hash';

/** On claimed objects of both sides, APIServiceNamespaces, and Namespaces: the side that owns them. A copy has the label of its original. */
export const ownerLabel = 'kube-bind.io/owner';
/** The values of `ownerLabel`. */
export type Owner = 'provider' | 'consumer';
/** The consumer namespace in which kubectl bind creates kubeconfig Secrets. */
export const kubeconfigNamespace = 'kube-bind';
/** On Secrets in `kubeconfigNamespace`: with `"true"`, the server sends heartbeats even before a binding names the Secret. */
export const providerKubeconfigLabel = 'kube-bind.io/provider-kubeconfig';
/** The key of the kubeconfig in a Secret with `providerKubeconfigLabel`. */
export const kubeconfigKey = 'kubeconfig';

/** Finalizer of APIServiceBindings. The server removes it after it has unbound all objects of the binding. */
export const unbindFinalizer = 'binding.drawbridge.dev/unbind';
/** On APIServiceBindings: `Orphan` keeps the provider's copies when the binding is deleted. Default `Delete`. */
export const unbindPolicyAnnotation = 'binding.drawbridge.dev/unbind-policy';
/** On APIServiceBindings: when a user sets a new value, the server reconciles every object of the binding again. */
export const resyncAnnotation = 'binding.drawbridge.dev/resync';
/** On APIServiceBindings: when a user sets a new value, the server sends the deletes of copies that it holds back as too many at once. */
export const allowDeletesAnnotation = 'binding.drawbridge.dev/allow-deletes';
/**
 * On APIServiceBindings, and on bundles for the bindings that they create: the resources whose claims the server accepts, as plural names
 * separated by commas. An empty value accepts none. Without the annotation, the server accepts all claimable resources.
 */
export const claimableAnnotation = 'binding.drawbridge.dev/claimable';
/** On consumer kubeconfig Secrets: `"true"` disables updates of the kubeconfig from the provider. */
export const keepKubeconfigAnnotation = 'binding.drawbridge.dev/keep-kubeconfig';
/**
 * On the consumer CRDs that the server installs: the revision of their schemas, a decimal integer. If the revision is older, the server
 * replaces the schemas. If the CRD does not serve `bindVersion` with a status subresource, the server replaces only that version.
 */
export const crdRevisionAnnotation = 'binding.drawbridge.dev/crd-revision';

/** Condition types of kube-bind's kinds. */
export const bindConditions = {
  ready: 'Ready',
  secretValid: 'SecretValid',
  informersSynced: 'InformersSynced',
  heartbeating: 'Heartbeating',
  connected: 'Connected',
  schemaInSync: 'SchemaInSync',
  /** Only on bundles. */
  synced: 'Synced',
  /** Only on ClusterBindings. */
  validVersion: 'ValidVersion',
  /** Only on exports. */
  consumerInSync: 'ConsumerInSync',
} as const;
