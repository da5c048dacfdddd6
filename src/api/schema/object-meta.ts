import { Type } from 'typebox';
import type { ObjectMeta } from '../object.ts';
import { type Read, readBySchema } from './read.ts';
import { toStructural } from './to-structural.ts';

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }));

/** Labels are bounded by the API server one by one, annotations by 256 KiB in total. */
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

const objectMeta = toStructural(
  Type.Object({
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
  }),
);

/**
 * The metadata of an object that may come from anywhere; managedFields are left out.
 * `name` is empty while an admission review for a CREATE with generateName has not settled it yet.
 */
export function readObjectMeta(metadata: unknown): Read<ObjectMeta> {
  return readBySchema(objectMeta, metadata, 'metadata');
}
