import { Type } from 'typebox';
import { ageColumn, column, defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { apiServiceNamespaces } from './names.ts';

export const apiServiceNamespaceKind = defineKind({
  resource: apiServiceNamespaces,
  description: 'An APIServiceNamespace stands for the namespace of the consumer that has its name.',
  spec: Type.Object({}, { description: 'Says nothing: the name of this object says it all.' }),
  specOptional: true,
  status: Type.Object(
    {
      namespace: Type.Optional(
        Type.String({ description: 'The namespace of the provider that stands for it.', maxLength: 253 }),
      ),
    },
    { description: 'What the provider has made of it.' },
  ),
  printerColumns: [
    column('Namespace', '.status.namespace', 'The namespace of the provider that stands for it.'),
    ageColumn,
  ],
  categories: ['kube-bindings'],
});

export type ApiServiceNamespace = ObjectOf<typeof apiServiceNamespaceKind>;

export function readApiServiceNamespace(object: unknown): Read<ApiServiceNamespace> {
  return readObject(apiServiceNamespaceKind, object);
}
