import { type Static, Type } from 'typebox';

export type { Condition } from './schema/fields.ts';

/** As in `/apis/<group>/<version>/…/<plural>`. The core group is the empty string. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

/** `maxLength`: of each value. Labels have 63; annotations 256 KiB together. */
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

/** Those of metav1.ObjectMeta that the server reads. */
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

/** As the API server returns it. Fields of kinds other than drawbridge's are checked when read. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: unknown;
  status?: unknown;
  [field: string]: unknown;
}

/** Without `namespace` for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

/** Of stores and queues: `namespace/name`, or `name` for cluster-scoped objects. */
export function keyOf(name: ObjectName): string {
  return name.namespace ? `${name.namespace}/${name.name}` : name.name;
}

export function nameOf(key: string): ObjectName {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** An empty selector matches everything, and an absent one nothing. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(resource: Resource): string {
  return resource.group ? `${resource.group}/${resource.version}` : resource.version;
}

/** A metav1.StatusCause. Of our webhooks and gateway: the code, and the message with the code. */
export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}
