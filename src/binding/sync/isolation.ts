import { nameOf } from '../../api/object.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';

export type Place =
  /** `terminating`: the provider deletes the service namespace; no copy is created there. */
  | { readonly kind: 'at'; readonly key: string; readonly terminating?: boolean }
  /** No service namespace yet. `requested`: its APIServiceNamespace exists. */
  | { readonly kind: 'unmapped'; readonly namespace: string; readonly requested: boolean }
  | { readonly kind: 'impossible'; readonly problem: string };

/**
 * Maps keys of consumer objects to keys of provider objects, and back.
 *
 *   namespaced kind, ns/a      <service namespace>/a
 *   cluster kind a, Prefixed   <cluster namespace>-a
 *   cluster kind a, Namespaced <cluster namespace>/a
 *   cluster kind a, None       a, which other consumers may use, too
 */
export interface Isolation {
  readonly providerNamespaced: boolean;
  /** If there is exactly one. */
  readonly providerNamespace?: string;
  /** The provider garbage-collects the copies with the cluster namespace. */
  readonly ownedByClusterNamespace: boolean;
  placeOf(consumerKey: string): Place;
  /** Undefined if it cannot be a copy for this consumer. */
  consumerKeyOf(providerKey: string): string | undefined;
}

export interface NamespacePairs {
  ofConsumer(
    namespace: string,
  ): { readonly serviceNamespace: string | undefined; readonly deleting: boolean } | undefined;
  ofProvider(serviceNamespace: string): string | undefined;
}

/** Characters, for a custom resource. */
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
      return unprefixed;
  }
}

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

function namespaced(clusterNamespace: string): Isolation {
  return {
    providerNamespaced: true,
    providerNamespace: clusterNamespace,
    ownedByClusterNamespace: false,
    placeOf: (consumerKey) => at(`${clusterNamespace}/${consumerKey}`),
    consumerKeyOf: (providerKey) => withoutPrefix(providerKey, `${clusterNamespace}/`),
  };
}

const unprefixed: Isolation = {
  providerNamespaced: false,
  ownedByClusterNamespace: true,
  placeOf: (consumerKey) => at(consumerKey),
  consumerKeyOf: (providerKey) => (providerKey.includes('/') ? undefined : providerKey),
};

const at = (key: string, terminating = false): Place =>
  terminating ? { kind: 'at', key, terminating } : { kind: 'at', key };

/** A slash in the rest would make it the key of a namespaced object. */
function withoutPrefix(text: string, prefix: string): string | undefined {
  const name = text.startsWith(prefix) ? text.slice(prefix.length) : '';
  return name === '' || name.includes('/') ? undefined : name;
}
