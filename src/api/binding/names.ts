import type { Resource } from '../object.ts';

/** The names of kube-bind's API. Those that begin with `binding.drawbridge.dev/` are our own. */
export const bindGroup = 'kube-bind.io';
export const bindVersion = 'v1alpha2';

const resource = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: bindGroup,
  version: bindVersion,
  plural,
  kind,
  namespaced,
});

/** In the consumer cluster. */
export const apiServiceBindings = resource('apiservicebindings', 'APIServiceBinding', false);
export const apiServiceBindingBundles = resource('apiservicebindingbundles', 'APIServiceBindingBundle', false);
/** In the cluster namespace, which the provider reserves for one consumer. */
export const apiServiceExports = resource('apiserviceexports', 'APIServiceExport', true);
export const apiServiceExportRequests = resource('apiserviceexportrequests', 'APIServiceExportRequest', true);
export const apiServiceNamespaces = resource('apiservicenamespaces', 'APIServiceNamespace', true);
export const boundSchemas = resource('boundschemas', 'BoundSchema', true);
export const clusterBindings = resource('clusterbindings', 'ClusterBinding', true);

/** Of the only ClusterBinding of a cluster namespace. */
export const clusterBindingName = 'cluster';

/** Of bound objects with a copy in the provider. Only here, kube-bind's domain has no dash. */
export const syncerFinalizer = 'kubebind.io/syncer';
/** Of copies, of claimed originals, and of the status of exports and BoundSchemas. */
export const bindFieldManager = 'kube-bind.io';

/** On provider copies of bound objects: the cluster namespace of their consumer. */
export const clusterNamespaceAnnotation = 'kube-bind.io/cluster-namespace';
/** On provider copies: the consumer object's namespace; empty if it is cluster-scoped. */
export const consumerNamespaceAnnotation = 'kube-bind.io/consumer-namespace';
/** On provider copies: the uid of the consumer object. */
export const consumerUidAnnotation = 'kube-bind.io/consumer-uid';
/**
 * On provider copies: `<uid>/<namespace>/<name>` of the consumer object, or `<uid>/<name>`, with
 * the uid of its binding (of claimed objects: of the consumer's `kube-system`). It proves that the
 * server may delete the copy; copies of other clusters or bindings have another value.
 */
export const copyOfAnnotation = 'binding.drawbridge.dev/copy-of';
/** On bound objects, and copies of the provider's objects: the provider object's namespace. */
export const providerNamespaceAnnotation = 'kube-bind.io/provider-namespace';
/** With `providerNamespaceAnnotation`: the uid of the provider object. */
export const providerUidAnnotation = 'kube-bind.io/provider-uid';
/** On copies of the provider's claimed objects: the uid of the cluster namespace. */
export const providerIdentityAnnotation = 'binding.drawbridge.dev/provider';
/** On BoundSchemas: a hash of the schema, by kube-bind's backend. Only tests use it. @testing */
export const sourceSpecHashAnnotation = 'kube-bind.io/source-spec-hash';

/** On claimed objects, APIServiceNamespaces, and Namespaces: the owning side, also on copies. */
export const ownerLabel = 'kube-bind.io/owner';
export type Owner = 'provider' | 'consumer';
/** Where kubectl bind creates kubeconfig Secrets, in the consumer. */
export const kubeconfigNamespace = 'kube-bind';
/** `"true"` on such a Secret: heartbeats even before a binding names the Secret. */
export const providerKubeconfigLabel = 'kube-bind.io/provider-kubeconfig';
/** In a Secret with `providerKubeconfigLabel`. */
export const kubeconfigKey = 'kubeconfig';

/** Of APIServiceBindings, until all objects of the binding are unbound. */
export const unbindFinalizer = 'binding.drawbridge.dev/unbind';
/** `Orphan` keeps the provider's copies when the binding is deleted. Default `Delete`. */
export const unbindPolicyAnnotation = 'binding.drawbridge.dev/unbind-policy';
/** With a new value, the server reconciles every object of the binding again. */
export const resyncAnnotation = 'binding.drawbridge.dev/resync';
/** With a new value, the server sends the deletes that it holds back as too many at once. */
export const allowDeletesAnnotation = 'binding.drawbridge.dev/allow-deletes';
/**
 * On bindings, and on bundles for theirs: the claims to accept, as plural names with commas. Empty:
 * none. Absent: all claimable resources.
 */
export const claimableAnnotation = 'binding.drawbridge.dev/claimable';
/** On consumer kubeconfig Secrets: `"true"` keeps the provider from updating the kubeconfig. */
export const keepKubeconfigAnnotation = 'binding.drawbridge.dev/keep-kubeconfig';
/** On the consumer CRDs: a decimal integer. The server replaces schemas of an older revision. */
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
