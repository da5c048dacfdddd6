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

/**
 * The view of a claimed object on either side. Digests replace the content: they show whether two objects are in sync, and the store keeps
 * no values of Secrets.
 */
export interface ClaimedView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly deleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** From the owner label; undefined without a valid label. */
  readonly owner: Owner | undefined;
  readonly origin: OriginAnnotations;
  /** Digest of `contentOf`. */
  readonly contentDigest: string;
  /** Digest of the labels and annotations that copies share with their original. */
  readonly metadataDigest: string;
  /** Type of a Secret, which cannot change; undefined for other kinds. */
  readonly type: string | undefined;
  /** Whether the object is marked immutable. Then neither this field nor the data can change. */
  readonly immutable: boolean;
}

/** The annotations that identify a copy's original; undefined if absent. */
export interface OriginAnnotations {
  readonly consumerNamespace: string | undefined;
  readonly consumerUid: string | undefined;
  /** uid of the consumer cluster, namespace, and name of the original. kube-bind sets none; drawbridge only if it knows the uid. */
  readonly copyOf: string | undefined;
  readonly providerNamespace: string | undefined;
  readonly providerUid: string | undefined;
  /** uid of the original's provider. kube-bind sets none; drawbridge only if it knows the uid. */
  readonly providerIdentity: string | undefined;
}

/** Indexes of the stores of claimed objects: by namespace, and by name. */
export const byNamespace = 'namespace';
export const byName = 'name';

/** The index functions. All stores use this one constant, so that they share their watches. */
export const claimedIndexes = {
  [byNamespace]: ({ namespace }: ClaimedView): string[] => [namespace],
  [byName]: ({ name }: ClaimedView): string[] => [name],
};

/** The view of an object; undefined without uid, resourceVersion, or namespace. */
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

/** All fields except apiVersion, kind, and metadata. The server copies them and, of the metadata, shared labels and annotations. */
export function contentOf(object: KubeObject): Readonly<Record<string, unknown>> {
  const { apiVersion: _, kind: __, metadata: ___, ...content } = object;
  return content;
}

/** The labels that copies share with their original. */
export const sharedLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(labels, (key) => isReserved(key) || key.includes('claimed.internal.apis.kcp.io'));

/** The annotations that copies share with their original. */
export const sharedAnnotations = (annotations: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(annotations, (key) => isReserved(key) || key.includes('kcp.io/cluster'));

/**
 * Keys of kube-bind and drawbridge, which the server does not copy. With {@link providerKubeconfigLabel}, a konnector would open a session
 * from a copy. With the label of serving certificates, another installation of drawbridge would serve the provider's certificate.
 */
const isReserved = (key: string): boolean => /^(kube-bind\.io|([a-z0-9-]+\.)*drawbridge\.dev)\//.test(key);

const withoutKeys = (
  map: Readonly<Record<string, string>>,
  isOmitted: (key: string) => boolean,
): Record<string, string> => Object.fromEntries(Object.entries(map).filter(([key]) => !isOmitted(key)));
