import {
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
  type Owner,
  ownerLabel,
  providerIdentityAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
} from '../../api/binding/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { stringMap } from '../../kit/json-value.ts';
import {
  type ClaimedView,
  contentOf,
  type OriginAnnotations,
  sharedAnnotations,
  sharedLabels,
} from './claimed-view.ts';

/** The fields that distinguish a copy from its original. */
export interface CopyIdentity {
  /** Namespace of the copy. */
  readonly namespace: string;
  /** The side of the original. */
  readonly owner: Owner;
  /** The annotations to write. An undefined field leaves the annotation of the copy as it is. */
  readonly origin: Partial<OriginAnnotations>;
}

/**
 * The copy of `original` for the other cluster: a new object or, with `current`, an update of that copy. An update keeps the uid,
 * resourceVersion, finalizers, ownerReferences, and the labels and annotations that are never shared.
 */
export function copyOf(original: KubeObject, identity: CopyIdentity, current?: KubeObject): KubeObject {
  const labels = stringMap(original.metadata.labels);
  const annotations = stringMap(original.metadata.annotations);
  const currentLabels = stringMap(current?.metadata.labels);
  const currentAnnotations = stringMap(current?.metadata.annotations);
  return {
    ...contentOf(original),
    apiVersion: original.apiVersion,
    kind: original.kind,
    metadata: {
      ...(current?.metadata ?? { name: original.metadata.name, namespace: identity.namespace }),
      labels: {
        ...without(currentLabels, sharedLabels(currentLabels)),
        ...sharedLabels(labels),
        [ownerLabel]: identity.owner,
      },
      annotations: {
        ...without(currentAnnotations, sharedAnnotations(currentAnnotations)),
        ...sharedAnnotations(annotations),
        ...annotationsOf(identity.origin),
      },
    },
  };
}

/** Whether `copy` equals `original` with `identity`, so that no write is due. */
export function isInSync(original: ClaimedView, copy: ClaimedView, { owner, origin }: CopyIdentity): boolean {
  return (
    original.contentDigest === copy.contentDigest &&
    original.metadataDigest === copy.metadataDigest &&
    copy.owner === owner &&
    originFields.every(
      (name) => origin[name] === undefined || (copy.origin[name] ?? expectedIfUnset(name, origin)) === origin[name],
    )
  );
}

/** Whether the API server would reject an update of `current` to `original`, so that the copy must be deleted and created. */
export const mustBeReplaced = (original: ClaimedView, current: ClaimedView): boolean =>
  original.type !== current.type || (current.immutable && original.contentDigest !== current.contentDigest);

const annotationNames = {
  consumerNamespace: consumerNamespaceAnnotation,
  consumerUid: consumerUidAnnotation,
  copyOf: copyOfAnnotation,
  providerNamespace: providerNamespaceAnnotation,
  providerUid: providerUidAnnotation,
  providerIdentity: providerIdentityAnnotation,
} as const;
const originFields = Object.keys(annotationNames) as (keyof OriginAnnotations)[];

/**
 * The value to assume for an absent annotation. kube-bind's konnector never sets `providerIdentity` and `copyOf`, so a copy that lacks only
 * these two needs no write.
 */
const expectedIfUnset = (name: keyof OriginAnnotations, origin: Partial<OriginAnnotations>): string | undefined =>
  name === 'providerIdentity' || name === 'copyOf' ? origin[name] : undefined;

function annotationsOf(origin: Partial<OriginAnnotations>): Record<string, string> {
  const set = originFields.flatMap((name): [string, string][] => {
    const value = origin[name];
    return value === undefined ? [] : [[annotationNames[name], value]];
  });
  return Object.fromEntries(set);
}

const without = (
  map: Readonly<Record<string, string>>,
  keys: Readonly<Record<string, string>>,
): Record<string, string> => Object.fromEntries(Object.entries(map).filter(([key]) => !Object.hasOwn(keys, key)));
