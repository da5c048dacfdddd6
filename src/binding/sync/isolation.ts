import { nameOf } from '../../api/object.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';

/** The place of an object's copy in the provider. */
export type Place =
  /**
   * `terminating`: the APIServiceNamespace is being deleted, so the provider deletes the service namespace. The server creates no copy
   * there, but reads and deletes copies.
   */
  | { readonly kind: 'at'; readonly key: string; readonly terminating?: boolean }
  /** `namespace` has no service namespace yet. `requested`: its APIServiceNamespace exists. */
  | { readonly kind: 'unmapped'; readonly namespace: string; readonly requested: boolean }
  /** No copy can exist. `problem`: why, and what to do. */
  | { readonly kind: 'impossible'; readonly problem: string };

/** Maps keys of consumer objects to keys of provider objects, and back. Keys are `namespace/name` or `name`. */
export interface Isolation {
  /** Whether the provider's kind is namespaced. */
  readonly providerNamespaced: boolean;
  /** The only provider namespace with copies; undefined if there are several or none. */
  readonly providerNamespace?: string;
  /** Whether the cluster namespace owns the copies, so that the provider garbage-collects them when it deletes that namespace. */
  readonly ownedByClusterNamespace: boolean;
  /** The place of the copy of this consumer object. */
  placeOf(consumerKey: string): Place;
  /**
   * The key of the consumer object whose copy this provider object would be. Undefined if the object cannot be a copy for this consumer, or
   * if no APIServiceNamespace names its namespace.
   */
  consumerKeyOf(providerKey: string): string | undefined;
}

/** Pairs of a consumer namespace and its service namespace in the provider. */
export interface NamespacePairs {
  /** The pair of a consumer namespace; undefined without an APIServiceNamespace. */
  ofConsumer(
    namespace: string,
  ): { readonly serviceNamespace: string | undefined; readonly deleting: boolean } | undefined;
  /** The consumer namespace of a service namespace; undefined if no APIServiceNamespace names it. */
  ofProvider(serviceNamespace: string): string | undefined;
}

/** Maximum length of the name of a custom resource, characters. */
const MAX_NAME = 253;

/** Namespaced kinds use service namespaces. The `isolation` of the export applies to cluster-scoped kinds only. */
export function isolationOf(
  { scope }: Pick<BoundSchemaView, 'scope'>,
  { isolation }: Pick<ExportView, 'isolation'>,
  clusterNamespace: string,
  pairs: NamespacePairs,
): Isolation {
  if (scope === 'Namespaced') return serviceNamespaced(pairs);
  switch (isolation) {
    case 'Prefixed':
      return prefixed(clusterNamespace);
    case 'Namespaced':
      return namespaced(clusterNamespace);
    default:
      return unprefixed;
  }
}

/** Namespaced objects keep their name. Their copies are in the service namespace of their namespace. */
function serviceNamespaced(pairs: NamespacePairs): Isolation {
  return {
    providerNamespaced: true,
    ownedByClusterNamespace: false,
    placeOf(consumerKey) {
      const { namespace = '', name } = nameOf(consumerKey);
      const pair = pairs.ofConsumer(namespace);
      if (!pair?.serviceNamespace) return { kind: 'unmapped', namespace, requested: pair !== undefined };
      return at(`${pair.serviceNamespace}/${name}`, pair.deleting);
    },
    consumerKeyOf(providerKey) {
      const { namespace = '', name } = nameOf(providerKey);
      const consumerNamespace = pairs.ofProvider(namespace);
      return consumerNamespace && `${consumerNamespace}/${name}`;
    },
  };
}

/** The name of a copy is the name of the cluster-scoped object, prefixed with the cluster namespace and `-`. */
function prefixed(clusterNamespace: string): Isolation {
  const prefix = `${clusterNamespace}-`;
  return {
    providerNamespaced: false,
    ownedByClusterNamespace: true,
    placeOf(consumerKey) {
      const name = `${prefix}${consumerKey}`;
      if (name.length <= MAX_NAME) return at(name);
      const maxLength = MAX_NAME - prefix.length;
      const problem = `its name has ${consumerKey.length} characters; the name of its copy begins with ${JSON.stringify(prefix)}, which leaves at most ${maxLength}; create it again under a shorter name`;
      return { kind: 'impossible', problem };
    },
    consumerKeyOf: (providerKey) => withoutPrefix(providerKey, prefix),
  };
}

/** Copies of cluster-scoped objects are namespaced objects in the cluster namespace. */
function namespaced(clusterNamespace: string): Isolation {
  return {
    providerNamespaced: true,
    providerNamespace: clusterNamespace,
    ownedByClusterNamespace: false,
    placeOf: (consumerKey) => at(`${clusterNamespace}/${consumerKey}`),
    consumerKeyOf: (providerKey) => withoutPrefix(providerKey, `${clusterNamespace}/`),
  };
}

/** Cluster-scoped objects keep their name, which they may share with objects of other consumers. */
const unprefixed: Isolation = {
  providerNamespaced: false,
  ownedByClusterNamespace: true,
  placeOf: (consumerKey) => at(consumerKey),
  consumerKeyOf: (providerKey) => (providerKey.includes('/') ? undefined : providerKey),
};

const at = (key: string, terminating = false): Place =>
  terminating ? { kind: 'at', key, terminating } : { kind: 'at', key };

/**
 * Undefined without the prefix, or if the rest is empty or contains a slash: with a slash, the rest would be the key of a namespaced object.
 */
function withoutPrefix(text: string, prefix: string): string | undefined {
  const name = text.startsWith(prefix) ? text.slice(prefix.length) : '';
  return name === '' || name.includes('/') ? undefined : name;
}
