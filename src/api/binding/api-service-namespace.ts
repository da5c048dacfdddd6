import { Type } from 'typebox';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { apiServiceNamespaces } from './names.ts';

export const apiServiceNamespaceKind = defineKind({
  resource: apiServiceNamespaces,
  description:
    'An APIServiceNamespace maps the consumer namespace of the same name to a namespace in the provider cluster.',
  spec: Type.Object({}, { description: 'Empty: the name of this object is that of the consumer namespace.' }),
  specOptional: true,
  status: Type.Object(
    {
      namespace: Type.Optional(
        Type.String({
          description: 'The namespace in the provider cluster, once the provider has set it.',
          maxLength: 253,
        }),
      ),
    },
    { description: 'The state in the provider.' },
  ),
  printerColumns: [column('Namespace', '.status.namespace', 'The namespace in the provider cluster.'), ageColumn],
  categories: ['kube-bindings'],
});

export type ApiServiceNamespace = ObjectOf<typeof apiServiceNamespaceKind>;
