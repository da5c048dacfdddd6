import { Type } from 'typebox';
import { listOf } from '../schema/fields.ts';
import { defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { boundSchemaVersion, conversion } from './bound-schema-version.ts';
import { bindConditionList } from './condition.ts';
import { crdNames } from './crd-names.ts';
import { boundSchemas } from './names.ts';
import { boundSchemaColumns } from './printer-columns.ts';

const scopes = [Type.Literal('Cluster'), Type.Literal('Namespaced')] as const;

export const boundSchemaKind = defineKind({
  resource: boundSchemas,
  description: 'A BoundSchema is what the consumer needs to make a CustomResourceDefinition of an exported resource.',
  spec: Type.Object(
    {
      informerScope: Type.Union([...scopes], {
        description: 'Whether the konnector watches all namespaces at once or each on its own.',
      }),
      group: Type.String({ description: 'The API group.', maxLength: 253 }),
      names: crdNames('The names of the resource.'),
      scope: Type.Union([...scopes], { description: 'Whether its objects live in namespaces of the consumer.' }),
      versions: Type.Array(boundSchemaVersion, {
        description: 'Its versions.',
        minItems: 1,
        maxItems: 64,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
      conversion: Type.Optional(conversion),
    },
    { description: 'The definition of the resource.' },
  ),
  specOptional: true,
  status: Type.Object(
    {
      acceptedNames: Type.Optional(crdNames('The names that the consumer uses.')),
      storedVersions: Type.Optional(
        listOf(Type.String({ maxLength: 63 }), 64, {
          description: 'Versions that the consumer has stored objects in.',
        }),
      ),
      conditions: Type.Optional(bindConditionList),
      instantiations: Type.Optional(Type.Integer({ description: 'How often it is used.', minimum: 0 })),
    },
    { description: 'What has come of it in the consumer.' },
  ),
  printerColumns: boundSchemaColumns,
  shortNames: ['bs'],
  categories: ['kube-bindings'],
});

export type BoundSchema = ObjectOf<typeof boundSchemaKind>;

export function readBoundSchema(object: unknown): Read<BoundSchema> {
  return readObject(boundSchemaKind, object);
}
