import { type Static, Type } from 'typebox';

export type { Condition } from './schema/fields.ts';

/** One served resource, as in `/apis/<group>/<version>/…/<plural>`. The core group is the empty string. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

/**
 * An optional map of strings. `maxLength`: of each value, characters. The API server limits the value of a label to 63 characters, and all
 * annotations together to 256 KiB.
 */
const stringsUpTo = (maxLength: number) =>
  Type.Optional(Type.Record(Type.String(), Type.String({ maxLength }), { maxProperties: 10_000 }));

const ownerReference = Type.Object({
  apiVersion: Type.String({ maxLength: 512 }),
  kind: Type.String({ maxLength: 253 }),
  name: Type.String({ maxLength: 512 }),
  uid: Type.String({ maxLength: 128 }),
  controller: Type.Optional(Type.Boolean()),
  blockOwnerDeletion: Type.Optional(Type.Boolean()),
});

/** The fields of metav1.ObjectMeta that the server reads. */
export const objectMeta = Type.Object({
  name: Type.String({ maxLength: 253, default: '' }),
  namespace: text(63),
  generateName: text(253),
  uid: text(128),
  resourceVersion: text(128),
  generation: Type.Optional(Type.Integer()),
  creationTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
  deletionTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
  deletionGracePeriodSeconds: Type.Optional(Type.Integer()),
  labels: stringsUpTo(63),
  annotations: stringsUpTo(262_144),
  finalizers: Type.Optional(Type.Array(Type.String({ maxLength: 512 }), { maxItems: 1000 })),
  ownerReferences: Type.Optional(Type.Array(ownerReference, { maxItems: 1000 })),
});

export type OwnerReference = Static<typeof ownerReference>;

export type ObjectMeta = Static<typeof objectMeta> & { managedFields?: unknown[] };

/**
 * An object as the API server returns it. The kinds of drawbridge have types in `src/api/`. The code checks the fields of other kinds when
 * it reads them.
 */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: unknown;
  status?: unknown;
  [field: string]: unknown;
}

/** Namespace and name of an object; `namespace` is absent for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

/** The key of an object in stores and queues: `namespace/name`, or `name` alone for cluster-scoped objects. */
export function keyOf(name: ObjectName): string {
  return name.namespace ? `${name.namespace}/${name.name}` : name.name;
}

/** The namespace and name in a key of `keyOf`. */
export function nameOf(key: string): ObjectName {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** metav1.LabelSelector. An empty selector matches everything, and an absent one matches nothing. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}
