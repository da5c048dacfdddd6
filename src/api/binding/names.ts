import type { Resource } from '../object.ts';

/** Names, labels and annotations of kube-bind, which konnectors and backends of every make agree on. */
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

/** On consumer objects while a copy of them may exist in the provider. No dash in its domain: that is how kube-bind spells it. */
export const syncerFinalizer = 'kubebind.io/syncer';
/** Field manager of what is written to provider objects. */
export const bindFieldManager = 'kube-bind.io';

/** On provider copies of bound objects: the cluster namespace of the consumer whose they are. */
export const clusterNamespaceAnnotation = 'kube-bind.io/cluster-namespace';
/** On provider copies: where the consumer object lives, empty for cluster-scoped ones, and its uid. */
export const consumerNamespaceAnnotation = 'kube-bind.io/consumer-namespace';
export const consumerUidAnnotation = 'kube-bind.io/consumer-uid';
/**
 * Ours, on provider copies: for which consumer object a copy was made, as `<uid>/<namespace>/<name>`, the uid that of the
 * APIServiceBinding, or for claimed objects that of the consumer cluster. Without it nobody can tell a copy whose object is gone from one
 * that another cluster, an earlier binding or somebody in the provider made.
 */
export const copyOfAnnotation = 'binding.drawbridge.dev/copy-of';
/** On consumer objects, and on copies of claimed objects that the provider owns. */
export const providerNamespaceAnnotation = 'kube-bind.io/provider-namespace';
export const providerUidAnnotation = 'kube-bind.io/provider-uid';
/** Ours, on consumer copies of claimed objects that the provider owns: uid of the cluster namespace, which tells providers apart. */
export const providerIdentityAnnotation = 'binding.drawbridge.dev/provider';
/** Written by the backend: changes when the schema does. @testing */
export const sourceSpecHashAnnotation = 'kube-bind.io/source-spec-hash';

/** On claimed objects of both sides, APIServiceNamespaces and Namespaces: who made it first. */
export const ownerLabel = 'kube-bind.io/owner';
export type Owner = 'provider' | 'consumer';
/** Of the consumer: where kubectl bind puts kubeconfig Secrets. */
export const kubeconfigNamespace = 'kube-bind';
/** `"true"` on Secrets in that namespace: heartbeats begin before there is a binding. */
export const providerKubeconfigLabel = 'kube-bind.io/provider-kubeconfig';
/** The key that such a Secret holds its kubeconfig under. */
export const kubeconfigKey = 'kubeconfig';

/** Ours, on APIServiceBindings: keeps a binding until what was bound through it is drained. */
export const unbindFinalizer = 'binding.drawbridge.dev/unbind';
/** Ours, on APIServiceBindings: `Orphan` leaves the provider's copies where they are when the binding goes; default `Delete`. */
export const unbindPolicyAnnotation = 'binding.drawbridge.dev/unbind-policy';
/** Ours, on APIServiceBindings: any new value has every object of the binding looked at again. */
export const resyncAnnotation = 'binding.drawbridge.dev/resync';
/** Ours, on APIServiceBindings: any new value lets the deletes of copies go through that are held back because they were too many at once. */
export const allowDeletesAnnotation = 'binding.drawbridge.dev/allow-deletes';
/**
 * Ours, on APIServiceBindings, and on bundles for the bindings that they make: what of the provider's claims is honoured, as plural names
 * with commas between them; empty means nothing, and without it everything that may be claimed is.
 */
export const claimableAnnotation = 'binding.drawbridge.dev/claimable';
/** Ours, on consumer kubeconfig Secrets: `"true"` keeps the provider from replacing the kubeconfig. */
export const keepKubeconfigAnnotation = 'binding.drawbridge.dev/keep-kubeconfig';
/** Ours, on the consumer CRDs that we install: a higher revision is never replaced by a lower one. */
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
