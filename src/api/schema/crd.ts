import { apiVersionOf, type KubeObject } from '../object.ts';
import { customResourceDefinitions } from '../resources.ts';
import type { Kind } from './kind.ts';
import type { StructuralSchema } from './structural-schema.ts';

/** The CustomResourceDefinition of a kind: one version, stored and served, with a status subresource. */
export function customResourceDefinition(kind: Kind): KubeObject {
  const { group, version, plural, kind: name, namespaced } = kind.resource;
  return {
    apiVersion: apiVersionOf(customResourceDefinitions),
    kind: customResourceDefinitions.kind,
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind: name, listKind: `${name}List`, plural, singular: name.toLowerCase() },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.printerColumns,
          schema: { openAPIV3Schema: rootSchema(kind) },
        },
      ],
    },
  };
}

function rootSchema(kind: Kind): StructuralSchema {
  return {
    type: 'object',
    description: kind.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'The version of this kind.' },
      kind: { type: 'string', description: 'The name of this kind.' },
      metadata: { type: 'object' },
      spec: kind.structural.spec,
      status: kind.structural.status,
    },
    ...(kind.rules && { 'x-kubernetes-validations': kind.rules }),
  };
}
