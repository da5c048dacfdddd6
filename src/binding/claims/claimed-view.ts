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
 * What is kept of a claimed object of either side. Of what it holds, digests: enough to see whether two are in step, and no copy
 * of every Secret in memory.
 */
export interface ClaimedView extends Projected {
  readonly namespace: string;
  readonly name: string;
  readonly deleting: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly owner: Owner | undefined;
  readonly origin: OriginAnnotations;
  /** Digest of all fields but metadata. */
  readonly contentDigest: string;
  /** Digest of the labels and annotations that copies have in common with their original. */
  readonly metadataDigest: string;
  /** Of Secrets; cannot be changed. */
  readonly type: string | undefined;
  /** Neither can this, nor the data, once it is true. */
  readonly immutable: boolean;
}

/** Of which object this is the copy, from its annotations. */
export interface OriginAnnotations {
  readonly consumerNamespace: string | undefined;
  readonly consumerUid: string | undefined;
  /** Which object of which consumer cluster; undefined on copies that another konnector made. */
  readonly copyOf: string | undefined;
  readonly providerNamespace: string | undefined;
  readonly providerUid: string | undefined;
  /** Which provider it came from; undefined on copies that another konnector made. */
  readonly providerIdentity: string | undefined;
}

/** Index of stores of claimed objects: by namespace, and by name alone. */
export const byNamespace = 'namespace';
export const byName = 'name';

/** One object for all stores, so that they share their watches. */
export const claimedIndexes = {
  [byNamespace]: ({ namespace }: ClaimedView): string[] => [namespace],
  [byName]: ({ name }: ClaimedView): string[] => [name],
};

export function viewClaimed(object: KubeObject): ClaimedView | undefined {
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

/** Everything that is copied besides labels and annotations. */
export function contentOf(object: KubeObject): Readonly<Record<string, unknown>> {
  const { apiVersion: _, kind: __, metadata: ___, ...content } = object;
  return content;
}

/** Labels that copies have in common with their original. */
export const sharedLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(labels, (key) => isOfBinding(key) || key.includes('claimed.internal.apis.kcp.io'));

export const sharedAnnotations = (annotations: Readonly<Record<string, string>>): Record<string, string> =>
  withoutKeys(annotations, (key) => isOfBinding(key) || key.includes('kcp.io/cluster'));

/** Said of one object, not of its copies: {@link providerKubeconfigLabel} on a copy would have a konnector act on it. */
const isOfBinding = (key: string): boolean =>
  key.startsWith('kube-bind.io/') || key.startsWith('binding.drawbridge.dev/');

const withoutKeys = (
  map: Readonly<Record<string, string>>,
  isLeftOut: (key: string) => boolean,
): Record<string, string> => Object.fromEntries(Object.entries(map).filter(([key]) => !isLeftOut(key)));
