import { type Static, Type } from 'typebox';
import { listOf, objectName, stringMap } from '../schema/fields.ts';
import { readBySchema } from '../schema/read.ts';
import { toStructural } from '../schema/structural-schema.ts';
import { fixed, groupResourceFields, versionNames } from './group-resource.ts';

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
  { description: 'Objects whose labels match; an empty selector matches all.', 'x-kubernetes-map-type': 'atomic' },
);

const namedResource = Type.Object({
  name: objectName('The name of an object.'),
  namespace: Type.Optional(Type.String({ description: 'Its namespace; absent means any.', maxLength: 253 })),
});

const reference = Type.Object({
  ...groupResourceFields,
  versions: Type.Optional(versionNames),
  jsonPath: Type.Object(
    {
      name: path('Where the referring object holds the name of what it refers to, in the path language of gjson.'),
      namespace: Type.Optional(path('Where it holds the namespace.')),
    },
    { description: 'The paths of the reference.' },
  ),
});

/** The consumer objects that a provider claims: those that any part of the selector matches. */
const permissionClaim = Type.Object({
  ...groupResourceFields,
  selector: Type.Object(
    {
      labelSelector: Type.Optional(labelSelector),
      namedResources: Type.Optional(listOf(namedResource, 1024, { description: 'Objects by name.' })),
      references: Type.Optional(
        listOf(reference, 128, { description: 'References in bound objects; the objects that they name are claimed.' }),
      ),
    },
    { description: 'The objects that are claimed; an empty selector claims none.' },
  ),
});

const description = 'The consumer objects that the provider claims, besides the bound resources.';

export const permissionClaims = Type.Array(permissionClaim, { description, maxItems: 256 });

export const fixedPermissionClaims = Type.Array(permissionClaim, {
  description,
  maxItems: 256,
  ...fixed('permissionClaims'),
});

export type PermissionClaim = Static<typeof permissionClaim>;

const structural = toStructural(permissionClaim, 'permissionClaim');

/** Reads a list of claims leniently: invalid entries are left out. */
export function readPermissionClaims(list: unknown): PermissionClaim[] {
  return (Array.isArray(list) ? list : []).flatMap((entry) => {
    const read = readBySchema<PermissionClaim>(structural, entry, 'permissionClaim');
    return read.ok ? [read.value] : [];
  });
}
