import { nameOf } from '../../api/object.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';

/** Where in the provider the copy of a consumer object lives. */
export type Place =
  /** `closing`: what is there may still be read and deleted, nothing new is made. */
  | { readonly kind: 'at'; readonly key: string; readonly closing?: boolean }
  /** No namespace of the provider stands for `namespace` yet; `requested`: the provider has been asked for one. */
  | { readonly kind: 'unmapped'; readonly namespace: string; readonly requested: boolean }
  | { readonly kind: 'impossible'; readonly problem: string };

/** How names of consumer objects become names of provider objects, and back. Keys are `namespace/name` or `name`. */
export interface Isolation {
  /** Whether the provider's kind is namespaced. */
  readonly providerNamespaced: boolean;
  /** The only namespace of the provider that copies may be in; undefined when there are several or none. */
  readonly providerNamespace?: string;
  /** Copies are owned by the cluster namespace, so that they go when it does. */
  readonly ownedByClusterNamespace: boolean;
  placeOf(consumerKey: string): Place;
  /** Undefined when the object cannot be a copy of ours. */
  consumerKeyOf(providerKey: string): string | undefined;
}

/** Which namespaces of consumer and provider stand for each other. */
export interface NamespacePairs {
  ofConsumer(
    namespace: string,
  ): { readonly serviceNamespace: string | undefined; readonly deleting: boolean } | undefined;
  ofProvider(serviceNamespace: string): string | undefined;
}

/** Of names of custom resources. */
const MAX_NAME = 253;

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
      return none;
  }
}

/** Namespaced objects keep their name and live in the namespace that the provider made for theirs. */
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

/** Cluster-scoped objects get the cluster namespace as a prefix of their name. */
function prefixed(clusterNamespace: string): Isolation {
  const prefix = `${clusterNamespace}-`;
  return {
    providerNamespaced: false,
    ownedByClusterNamespace: true,
    placeOf(consumerKey) {
      const name = `${prefix}${consumerKey}`;
      if (name.length <= MAX_NAME) return at(name);
      const most = MAX_NAME - prefix.length;
      const problem = `its name is too long for the provider, where it is prefixed with ${JSON.stringify(prefix)}: ${consumerKey.length} characters, at most ${most} are possible; create it again under a shorter name`;
      return { kind: 'impossible', problem };
    },
    consumerKeyOf: (providerKey) => withoutPrefix(providerKey, prefix),
  };
}

/** Cluster-scoped objects become namespaced ones in the cluster namespace. */
function namespaced(clusterNamespace: string): Isolation {
  return {
    providerNamespaced: true,
    providerNamespace: clusterNamespace,
    ownedByClusterNamespace: false,
    placeOf: (consumerKey) => at(`${clusterNamespace}/${consumerKey}`),
    consumerKeyOf: (providerKey) => withoutPrefix(providerKey, `${clusterNamespace}/`),
  };
}

/** Cluster-scoped objects have the same name on both sides, and share the space of names with everybody else. */
const none: Isolation = {
  providerNamespaced: false,
  ownedByClusterNamespace: true,
  placeOf: (consumerKey) => at(consumerKey),
  consumerKeyOf: (providerKey) => (providerKey.includes('/') ? undefined : providerKey),
};

const at = (key: string, closing = false): Place => (closing ? { kind: 'at', key, closing } : { kind: 'at', key });

/** Of cluster-scoped objects: a provider may send any name, and one with a slash would be that of another object. */
function withoutPrefix(text: string, prefix: string): string | undefined {
  const name = text.startsWith(prefix) ? text.slice(prefix.length) : '';
  return name === '' || name.includes('/') ? undefined : name;
}
