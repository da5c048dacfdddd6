import {
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
  type Owner,
  ownerLabel,
  providerIdentityAnnotation,
  providerKubeconfigLabel,
  providerNamespaceAnnotation,
  providerUidAnnotation,
} from '../../api/binding/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { own, stringMap } from '../../kit/json-value.ts';
import { text } from '../../kube/fields.ts';
import type { Projected } from '../../kube/store.ts';

/** Digests replace the content, so that the store keeps no values of Secrets. */
export interface ClaimedView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly deleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** From a valid owner label. */
  readonly owner: Owner | undefined;
  readonly origin: OriginAnnotations;
  readonly contentDigest: string;
  readonly metadataDigest: string;
  /** Type of a Secret, which cannot change. */
  readonly type: string | undefined;
  /** If true, neither this field nor the data can change. */
  readonly immutable: boolean;
}

export interface OriginAnnotations {
  readonly consumerNamespace: string | undefined;
  readonly consumerUid: string | undefined;
  /** uid of the consumer cluster, namespace, and name of the original. kube-bind sets none. */
  readonly copyOf: string | undefined;
  readonly providerNamespace: string | undefined;
  readonly providerUid: string | undefined;
  /** uid of the original's provider. kube-bind sets none. */
  readonly providerIdentity: string | undefined;
}

export const byNamespace = 'namespace';
export const byName = 'name';

/** One constant, so that all stores share their watches. */
export const claimedIndexes = {
  [byNamespace]: ({ namespace }: ClaimedView): string[] => [namespace],
  [byName]: ({ name }: ClaimedView): string[] => [name],
};

/** Undefined without uid, resourceVersion, or namespace. */
export function claimedView(object: KubeObject): ClaimedView | undefined {
  const { metadata } = object;
  const { uid, resourceVersion, namespace, name } = metadata;
  if (!uid || !resourceVersion || !namespace) return undefined;
  const labels = stringMap(metadata.labels);
  const annotations = stringMap(metadata.annotations);
  const owner = labels[ownerLabel];
  return {
    key: keyOf({ namespace, name }),
    uid,
    resourceVersion,
    namespace,
    name,
    deleting: metadata.deletionTimestamp !== undefined,
    labels,
    owner: owner === 'consumer' || owner === 'provider' ? owner : undefined,
    origin: {
      consumerNamespace: annotations[consumerNamespaceAnnotation],
      consumerUid: annotations[consumerUidAnnotation],
      copyOf: annotations[copyOfAnnotation],
      providerNamespace: annotations[providerNamespaceAnnotation],
      providerUid: annotations[providerUidAnnotation],
      providerIdentity: annotations[providerIdentityAnnotation],
    },
    contentDigest: sha256Hex(canonicalJson(contentOf(object))),
    metadataDigest: sha256Hex(canonicalJson([sharedLabels(labels), sharedAnnotations(annotations)])),
    type: text(object, 'type'),
    immutable: own(object, 'immutable') === true,
  };
}

/** What copies take from their original besides shared labels and annotations. */
export function contentOf(object: KubeObject): Readonly<Record<string, unknown>> {
  const { apiVersion: _, kind: __, metadata: ___, ...content } = object;
  return content;
}

export const sharedLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(labels, (key) => isReserved(key) || key.includes('claimed.internal.apis.kcp.io'));

export const sharedAnnotations = (annotations: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(annotations, (key) => isReserved(key) || key.includes('kcp.io/cluster'));

/**
 * Keys that are never copied. A copied {@link providerKubeconfigLabel} would open a session, and a
 * copied label of serving certificates would let an installation serve the provider's.
 */
const isReserved = (key: string): boolean => /^(kube-bind\.io|([a-z0-9-]+\.)*drawbridge\.dev)\//.test(key);

const withoutKeys = (
  map: Readonly<Record<string, string>>,
  isOmitted: (key: string) => boolean,
): Record<string, string> => Object.fromEntries(Object.entries(map).filter(([key]) => !isOmitted(key)));
