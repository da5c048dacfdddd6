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
import { type ClaimedView, contentOf, type Marks, sharedAnnotations, sharedLabels } from './claimed-view.ts';

/** What distinguishes a copy from its original. */
export interface CopyIdentity {
  readonly namespace: string;
  readonly owner: Owner;
  /** Those that are defined are set. */
  readonly marks: Partial<Marks>;
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
        ...annotationsOf(identity.marks),
      },
    },
  };
}

/** Whether `copy` is `original` as `identity` wants it, so that there is nothing to write. */
export function isInStep(original: ClaimedView, copy: ClaimedView, { owner, marks }: CopyIdentity): boolean {
  return (
    original.content === copy.content &&
    original.dress === copy.dress &&
    copy.owner === owner &&
    markNames.every((name) => marks[name] === undefined || (copy.marks[name] ?? unsaid(name, marks)) === marks[name])
  );
}

/** Whether the apiserver would refuse to turn `present` into a copy of `original`, so that it takes another object. */
export const mustBeReplaced = (original: ClaimedView, present: ClaimedView): boolean =>
  original.type !== present.type || (present.immutable && original.content !== present.content);

const annotationNames = {
  consumerNamespace: consumerNamespaceAnnotation,
  consumerUid: consumerUidAnnotation,
  copyOf: copyOfAnnotation,
  providerNamespace: providerNamespaceAnnotation,
  providerUid: providerUidAnnotation,
  providerIdentity: providerIdentityAnnotation,
} as const;
const markNames = Object.keys(annotationNames) as (keyof Marks)[];

/** What only we say was not said by the konnector that made the copy; that alone is not worth a write. */
const unsaid = (name: keyof Marks, marks: Partial<Marks>): string | undefined =>
  name === 'providerIdentity' || name === 'copyOf' ? marks[name] : undefined;

function annotationsOf(marks: Partial<Marks>): Record<string, string> {
  const set = markNames.flatMap((name): [string, string][] => {
    const value = marks[name];
    return value === undefined ? [] : [[annotationNames[name], value]];
  });
  return Object.fromEntries(set);
}

const without = (
  map: Readonly<Record<string, string>>,
  keys: Readonly<Record<string, string>>,
): Record<string, string> => Object.fromEntries(Object.entries(map).filter(([key]) => !Object.hasOwn(keys, key)));
