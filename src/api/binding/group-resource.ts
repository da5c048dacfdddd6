import { type Static, Type } from 'typebox';
import { listOf } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';

/** `field`: its name in the message. */
export const immutable = (field: string): { 'x-kubernetes-validations': CelRule[] } => ({
  'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: `${field} is immutable; create another object` }],
});

/** Without its version. */
export const groupResourceFields = {
  group: Type.String({
    description: 'The API group; empty for the core group.',
    default: '',
    maxLength: 253,
    pattern: '^(|[a-z0-9]([-a-z0-9]*[a-z0-9](\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?)$',
  }),
  resource: Type.String({
    description: 'The plural name of the resource.',
    maxLength: 253,
    pattern: '^[a-z][-a-z0-9]*[a-z0-9]$',
  }),
};

const groupResource = Type.Object(groupResourceFields);

/** Without its version. */
export type GroupResource = Static<typeof groupResource>;

export const versionNames = (description: string) => listOf(Type.String({ maxLength: 63 }), 64, { description });

export const exportedResources = Type.Array(
  Type.Object({
    ...groupResourceFields,
    versions: Type.Optional(versionNames('The API versions that may be synced; if absent or empty, any version.')),
  }),
  {
    description: 'The resources, each with a BoundSchema.',
    minItems: 1,
    maxItems: 256,
    ...immutable('resources'),
  },
);

/** `<resource>.<group>`, with `core` for the core group. */
export function boundSchemaName({ group, resource }: GroupResource): string {
  return `${resource}.${group || 'core'}`;
}
