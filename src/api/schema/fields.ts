import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox';
import { maxConditionMessage } from '../conditions.ts';

/** Server-side apply replaces it as a whole. */
export const listOf = <Item extends TSchema>(items: Item, maxItems: number, options: TSchemaOptions = {}) =>
  Type.Array(items, { maxItems, 'x-kubernetes-list-type': 'atomic', ...options });

/** At most 128, such as labels. */
export const stringMap = (description: string, valueMaxLength: number) =>
  Type.Record(Type.String(), Type.String({ maxLength: valueMaxLength }), { description, maxProperties: 128 });

/** One of these texts. */
export const oneOf = <const Name extends string>(names: readonly Name[], options: TSchemaOptions = {}) =>
  Type.Unsafe<Name>({ type: 'string', ...options, enum: [...names] });

/** 1 to 253 characters; the syntax is not checked. */
export const objectName = (description: string) => Type.String({ description, minLength: 1, maxLength: 253 });

/** RFC 3339, for example `2026-11-21T09:30:00Z`. */
export const time = (description: string) => Type.String({ description, format: 'date-time' });

/** Of any shape, preserved unchanged. */
export const opaqueObject = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true });

/** Null included. */
export const anyJson = (description: string) =>
  Type.Unsafe<unknown>({ description, nullable: true, 'x-kubernetes-preserve-unknown-fields': true });

/** Such as `500m` or `1Gi`. Rejects negative strings, but not negative integers. */
export const quantity = (description: string) =>
  Type.Unsafe<number | string>({
    description,
    'x-kubernetes-int-or-string': true,
    maxLength: 64,
    pattern: '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$',
  });

const condition = Type.Object({
  type: Type.String({ description: 'The type of the condition.', minLength: 1, maxLength: 316 }),
  status: oneOf(['True', 'False', 'Unknown'], {
    description: 'The status of the condition.',
  }),
  reason: Type.String({
    description: 'The reason for the status, as one word in UpperCamelCase for programs.',
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
  }),
  message: Type.String({ description: 'The reason for the status, for people.', maxLength: maxConditionMessage }),
  lastTransitionTime: time('When the status last changed.'),
  observedGeneration: Type.Optional(
    Type.Integer({ description: 'The metadata.generation that the condition refers to.', minimum: 0, format: 'int64' }),
  ),
});

export type Condition = Static<typeof condition>;

/** One entry per type. */
export const conditions = Type.Array(condition, {
  description: 'The conditions of this object, one per type.',
  maxItems: 32,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});
