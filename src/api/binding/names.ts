import type { Resource } from '../object.ts';

/** Names, labels, and annotations of kube-bind's API. */
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
/** In the cluster namespace of the provider. */
export const apiServiceExports = resource('apiserviceexports', 'APIServiceExport', true);
export const apiServiceExportRequests = resource('apiserviceexportrequests', 'APIServiceExportRequest', true);
export const apiServiceNamespaces = resource('apiservicenamespaces', 'APIServiceNamespace', true);
export const boundSchemas = resource('boundschemas', 'BoundSchema', true);
export const clusterBindings = resource('clusterbindings', 'ClusterBinding', true);

/** Name of the only ClusterBinding of a cluster namespace. */
export const clusterBindingName = 'cluster';

/** Finalizer of consumer objects while a copy may exist in the provider. kube-bind spells this domain without a dash. */
export const syncerFinalizer = 'kubebind.io/syncer';
/** Field manager of writes to provider objects. */
export const bindFieldManager = 'kube-bind.io';

/** On provider copies of bound objects: the cluster namespace of their consumer. */
export const clusterNamespaceAnnotation = 'kube-bind.io/cluster-namespace';
/** On provider copies: namespace (empty if cluster-scoped) and uid of the consumer object. */
export const consumerNamespaceAnnotation = 'kube-bind.io/consumer-namespace';
export const consumerUidAnnotation = 'kube-bind.io/consumer-uid';
/**
 * Ours, on provider copies: the original, as `<uid>/<namespace>/<name>`. The uid is that of the APIServiceBinding or, for claimed objects,
 * of the consumer cluster. It distinguishes the copy of a deleted object from one that another cluster or an earlier binding made, or that
 * was created in the provider.
 */
export const copyOfAnnotation = 'binding.drawbridge.dev/copy-of';
/** On consumer objects, and on copies of claimed objects that the provider owns. */
export const providerNamespaceAnnotation = 'kube-bind.io/provider-namespace';
export const providerUidAnnotation = 'kube-bind.io/provider-uid';
/** Ours, on consumer copies of claimed objects that the provider owns: uid of the cluster namespace, which distinguishes providers. */
export const providerIdentityAnnotation = 'binding.drawbridge.dev/provider';
/** Written by the backend: changes when the schema does. @testing */
export const sourceSpecHashAnnotation = 'kube-bind.io/source-spec-hash';

/** On claimed objects of both sides, APIServiceNamespaces, and Namespaces: the side that created it first. */
export const ownerLabel = 'kube-bind.io/owner';
export type Owner = 'provider' | 'consumer';
/** The consumer namespace in which kubectl bind creates kubeconfig Secrets. */
export const kubeconfigNamespace = 'kube-bind';
/** `"true"` on Secrets in that namespace: heartbeats start before a binding exists. */
export const providerKubeconfigLabel = 'kube-bind.io/provider-kubeconfig';
/** The key of the kubeconfig in such a Secret. */
export const kubeconfigKey = 'kubeconfig';

/** Ours, on APIServiceBindings: finalizer until the binding's objects are drained. */
export const unbindFinalizer = 'binding.drawbridge.dev/unbind';
/** Ours, on APIServiceBindings: `Orphan` keeps the provider's copies when the binding is deleted. Default `Delete`. */
export const unbindPolicyAnnotation = 'binding.drawbridge.dev/unbind-policy';
/** Ours, on APIServiceBindings: a new value reconciles every object of the binding again. */
export const resyncAnnotation = 'binding.drawbridge.dev/resync';
/** Ours, on APIServiceBindings: a new value allows the deletes of copies that are held back because there are too many at once. */
export const allowDeletesAnnotation = 'binding.drawbridge.dev/allow-deletes';
/**
 * Ours, on APIServiceBindings, and on bundles for the bindings that they create: the resources whose claims are accepted, as plural names
 * separated by commas. Empty accepts none; without the annotation all claimable resources are accepted.
 */
export const claimableAnnotation = 'binding.drawbridge.dev/claimable';
/** Ours, on consumer kubeconfig Secrets: `"true"` disables updates of the kubeconfig from the provider. */
export const keepKubeconfigAnnotation = 'binding.drawbridge.dev/keep-kubeconfig';
/** Ours, on the consumer CRDs that the server installs: a lower revision never replaces a higher one. */
export const crdRevisionAnnotation = 'binding.drawbridge.dev/crd-revision';

export const bindConditions = {
  ready: 'Ready',
  secretValid: 'SecretValid',
  informersSynced: 'InformersSynced',
  heartbeating: 'Heartbeating',
  connected: 'Connected',
  schemaInSync: 'SchemaInSync',
  /** Of bundles. */
  synced: 'Synced',
  /** Of ClusterBindings. */
  validVersion: 'ValidVersion',
  /** Of exports. */
  consumerInSync: 'ConsumerInSync',
} as const;
