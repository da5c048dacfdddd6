import { type Static, Type } from 'typebox';
import { listOf, objectName, stringMap } from '../schema/fields.ts';
import { readBySchema } from '../schema/read.ts';
import { toStructural } from '../schema/structural-schema.ts';
import { groupResourceFields, immutable, versionNames } from './group-resource.ts';

const labelText = (description: string) => Type.String({ description, maxLength: 316 });
const path = (description: string) => Type.String({ description, maxLength: 1024 });

const labelSelector = Type.Object(
  {
    matchLabels: Type.Optional(stringMap('Labels with their values; all must match.', 63)),
    matchExpressions: Type.Optional(
      listOf(
        Type.Object({
          key: labelText('The name of the label.'),
          operator: labelText('In, NotIn, Exists, or DoesNotExist.'),
          values: Type.Optional(
            listOf(Type.String({ maxLength: 63 }), 256, { description: 'The values that In and NotIn compare with.' }),
          ),
        }),
        128,
        { description: 'Requirements; all must match.' },
      ),
    ),
  },
  { description: 'Objects by label. An empty selector matches all.', 'x-kubernetes-map-type': 'atomic' },
);

const namedResource = Type.Object({
  name: objectName('The name of an object.'),
  namespace: Type.Optional(
    Type.String({
      description: 'If absent or empty, in any namespace.',
      maxLength: 253,
    }),
  ),
});

const reference = Type.Object({
  ...groupResourceFields,
  versions: Type.Optional(
    versionNames('API versions of the referring kind. The konnector reads the first one, unless the kind is bound.'),
  ),
  jsonPath: Type.Object(
    {
      name: path(
        'The path of the referenced name, at most 512 characters: names, indexes of lists, and # for each element of a list, joined by dots, but no other syntax of gjson.',
      ),
      namespace: Type.Optional(
        path(
          'The path of the referenced namespace. If absent, a reference covers the namespace of the referring object with isolation Namespaced, otherwise every namespace.',
        ),
      ),
    },
    { description: 'The paths of the reference.' },
  ),
});

/** Of the provider, on objects in both clusters that at least one part of the selector matches. */
const permissionClaim = Type.Object({
  ...groupResourceFields,
  selector: Type.Object(
    {
      labelSelector: Type.Optional(labelSelector),
      namedResources: Type.Optional(listOf(namedResource, 1024, { description: 'The names of claimed objects.' })),
      references: Type.Optional(
        listOf(reference, 128, {
          description: 'Claims the objects that objects of these kinds refer to.',
        }),
      ),
    },
    { description: 'The claimed objects. An empty selector claims none.' },
  ),
});

const description =
  'Claims of the provider on other objects. The konnector copies those of an accepted claim in both directions.';

export const permissionClaims = Type.Array(permissionClaim, { description, maxItems: 256 });

export const immutablePermissionClaims = Type.Array(permissionClaim, {
  description,
  maxItems: 256,
  ...immutable('permissionClaims'),
});

/** A resource, and a selector of the claimed objects. */
export type PermissionClaim = Static<typeof permissionClaim>;

const structural = toStructural(permissionClaim, 'permissionClaim');

/** Skips invalid entries; a value that is not a list has none. Never throws. */
export function readPermissionClaims(list: unknown): PermissionClaim[] {
  return (Array.isArray(list) ? list : []).flatMap((entry) => {
    const read = readBySchema<PermissionClaim>(structural, entry, 'permissionClaim');
    return read.ok ? [read.value] : [];
  });
}
