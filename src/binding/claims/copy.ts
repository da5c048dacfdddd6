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

/** What distinguishes a copy from its original. */
export interface CopyIdentity {
  readonly namespace: string;
  readonly owner: Owner;
  /** Those that are defined are set. */
  readonly origin: Partial<OriginAnnotations>;
}

/**
 * `original` as it is to be in the other cluster. In place of `present` it keeps what belongs to the object there: uid, version,
 * finalizers, owners, and whatever of its labels and annotations is never shared.
 */
export function copyOf(original: KubeObject, identity: CopyIdentity, present?: KubeObject): KubeObject {
  const labels = stringMap(original.metadata.labels);
  const annotations = stringMap(original.metadata.annotations);
  const its = { labels: stringMap(present?.metadata.labels), annotations: stringMap(present?.metadata.annotations) };
  return {
    ...contentOf(original),
    apiVersion: original.apiVersion,
    kind: original.kind,
    metadata: {
      ...(present?.metadata ?? { name: original.metadata.name, namespace: identity.namespace }),
      labels: {
        ...without(its.labels, sharedLabels(its.labels)),
        ...sharedLabels(labels),
        [ownerLabel]: identity.owner,
      },
      annotations: {
        ...without(its.annotations, sharedAnnotations(its.annotations)),
        ...sharedAnnotations(annotations),
        ...annotationsOf(identity.origin),
      },
    },
  };
}

/** Whether `copy` is `original` as `identity` wants it, so that there is nothing to write. */
export function isInSync(original: ClaimedView, copy: ClaimedView, { owner, origin }: CopyIdentity): boolean {
  return (
    original.contentDigest === copy.contentDigest &&
    original.metadataDigest === copy.metadataDigest &&
    copy.owner === owner &&
    originFields.every(
      (name) => origin[name] === undefined || (copy.origin[name] ?? unsetByOthers(name, origin)) === origin[name],
    )
  );
}

/** Whether the apiserver would refuse to turn `present` into a copy of `original`, so that it takes another object. */
export const mustBeReplaced = (original: ClaimedView, present: ClaimedView): boolean =>
  original.type !== present.type || (present.immutable && original.contentDigest !== present.contentDigest);

const annotationNames = {
  consumerNamespace: consumerNamespaceAnnotation,
  consumerUid: consumerUidAnnotation,
  copyOf: copyOfAnnotation,
  providerNamespace: providerNamespaceAnnotation,
  providerUid: providerUidAnnotation,
  providerIdentity: providerIdentityAnnotation,
} as const;
const originFields = Object.keys(annotationNames) as (keyof OriginAnnotations)[];

/** What only we say was not said by the konnector that made the copy; that alone is not worth a write. */
const unsetByOthers = (name: keyof OriginAnnotations, origin: Partial<OriginAnnotations>): string | undefined =>
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
