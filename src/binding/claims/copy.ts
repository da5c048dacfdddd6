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

export interface CopyIdentity {
  readonly namespace: string;
  readonly owner: Owner;
  /** An undefined field leaves the annotation of the copy as it is. */
  readonly origin: Partial<OriginAnnotations>;
}

/**
 * The copy of `original` for the other cluster. With `current`: an update of it, which keeps uid,
 * resourceVersion, finalizers, ownerReferences, and what is never shared.
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

/** No write is due. */
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

/** Whether the API server would reject the update, so that the copy is deleted and created. */
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

/** kube-bind never sets it, so a copy that lacks only it needs no write. */
const expectedIfUnset = (name: keyof OriginAnnotations, origin: Partial<OriginAnnotations>): string | undefined =>
  name === 'providerIdentity' ? origin[name] : undefined;

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
