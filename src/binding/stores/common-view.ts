import { type KubeObject, keyOf, type OwnerReference } from '../../api/object.ts';
import { isRecord, listIn, own, stringMap, strings } from '../../kit/json-value.ts';
import { text } from '../../kube/fields.ts';
import type { Projected } from '../../kube/store.ts';

/** The metadata that stores keep. The annotations lack kubectl's last-applied-configuration. */
export interface CommonView extends Projected {
  readonly name: string;
  /** 0 if the object has none. */
  readonly generation: number;
  /** Whether the object has a deletionTimestamp. */
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
  /**
   * Why the spec is not valid; absent if it is valid. The fields of a spec that is not valid are placeholders. Of the objects that are not
   * valid, stores keep only bindings and exports, because the absence of these from a store would cause deletions.
   */
  readonly specProblem?: string;
}

/** kubectl writes a whole manifest to this annotation. The konnector never reads it. */
export const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * The metadata of an object of the consumer or the provider; undefined without uid or resourceVersion. A provider may send any JSON, so the
 * view omits list and map entries of the wrong type.
 */
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

/** The entries of a list field that are objects. */
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
