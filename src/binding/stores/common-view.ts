import { type KubeObject, keyOf, type OwnerReference } from '../../api/object.ts';
import { isRecord, listIn, own, stringMap, strings } from '../../kit/json-value.ts';
import { text } from '../../kube/fields.ts';
import type { Projected } from '../../kube/store.ts';

/** The metadata that stores keep, without kubectl's last-applied-configuration. */
export interface CommonView extends Projected {
  readonly name: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /** The spec is a placeholder. Only for kinds whose absence would cause deletions. */
  readonly specProblem?: string;
}

/** A whole manifest, which the konnector never reads. */
export const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Undefined without uid or resourceVersion. Omits list and map entries of the wrong type. */
export function commonView({ metadata }: KubeObject): CommonView | undefined {
  const { uid, resourceVersion, name, namespace, generation } = metadata;
  if (typeof uid !== 'string' || uid === '' || typeof resourceVersion !== 'string') return undefined;
  return {
    key: keyOf(typeof namespace === 'string' ? { namespace, name } : { name }),
    uid,
    resourceVersion,
    name,
    generation: typeof generation === 'number' ? generation : 0,
    deleting: typeof metadata.deletionTimestamp === 'string',
    finalizers: strings(own(metadata, 'finalizers')),
    labels: stringMap(own(metadata, 'labels')),
    annotations: annotationsOf(metadata),
    ownerReferences: objectsIn(metadata, 'ownerReferences').flatMap(ownerReference),
  };
}

export const objectsIn = (object: unknown, field: string): Record<string, unknown>[] =>
  listIn(object, field).filter(isRecord);

function annotationsOf(metadata: unknown): Record<string, string> {
  const { [lastApplied]: _, ...annotations } = stringMap(own(metadata, 'annotations'));
  return annotations;
}

function ownerReference(value: unknown): OwnerReference[] {
  const apiVersion = text(value, 'apiVersion');
  const kind = text(value, 'kind');
  const name = text(value, 'name');
  const uid = text(value, 'uid');
  if (!apiVersion || !kind || !name || !uid) return [];
  const controller = own(value, 'controller');
  const blockOwnerDeletion = own(value, 'blockOwnerDeletion');
  return [
    {
      apiVersion,
      kind,
      name,
      uid,
      ...(typeof controller === 'boolean' ? { controller } : {}),
      ...(typeof blockOwnerDeletion === 'boolean' ? { blockOwnerDeletion } : {}),
    },
  ];
}
