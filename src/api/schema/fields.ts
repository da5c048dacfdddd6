import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox';
import { maxConditionMessage } from '../conditions.ts';

/** A list that server-side apply replaces as a whole. */
export const listOf = <Item extends TSchema>(items: Item, maxItems: number, options: TSchemaOptions = {}) =>
  Type.Array(items, { maxItems, 'x-kubernetes-list-type': 'atomic', ...options });

/** A map of at most 128 strings, such as labels. */
export const stringMap = (description: string, valueMaxLength: number) =>
  Type.Record(Type.String(), Type.String({ maxLength: valueMaxLength }), { description, maxProperties: 128 });

/** The name of an object, 1 to 253 characters. The schema does not check the syntax, so an object with this name may be impossible. */
export const objectName = (description: string) => Type.String({ description, minLength: 1, maxLength: 253 });

/** An instant as RFC 3339 text, for example `2026-11-21T09:30:00Z`. */
export const time = (description: string) => Type.String({ description, format: 'date-time' });

/** An object of any shape, preserved unchanged. */
export const opaqueObject = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true });

/** Any JSON value, null included. */
export const anyJson = (description: string) =>
  Type.Unsafe<unknown>({ description, nullable: true, 'x-kubernetes-preserve-unknown-fields': true });

/** A quantity such as `500m`, `2`, or `1Gi`. The schema rejects negative strings, but not negative integers. */
export const quantity = (description: string) =>
  Type.Unsafe<number | string>({
    description,
    'x-kubernetes-int-or-string': true,
    maxLength: 64,
    pattern: '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$',
  });

const condition = Type.Object({
  type: Type.String({ description: 'The type of the condition.', minLength: 1, maxLength: 316 }),
  status: Type.Union([Type.Literal('True'), Type.Literal('False'), Type.Literal('Unknown')], {
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

/** metav1.Condition. */
export type Condition = Static<typeof condition>;

/** status.conditions: a list of metav1.Condition with one entry per type. */
export const conditions = Type.Array(condition, {
  description: 'The conditions of this object, one per type.',
  maxItems: 32,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});
