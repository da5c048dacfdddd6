import type { TObject } from 'typebox';
import { apiVersionOf, type KubeObject } from '../object.ts';
import { customResourceDefinitions } from '../resources.ts';
import type { Kind } from './kind.ts';
import { type StructuralSchema, toStructural } from './structural-schema.ts';

/** Stores the current version, and serves the older ones, too. All have a status subresource. */
export function customResourceDefinition(kind: Kind): KubeObject {
  const { group, version, plural, kind: name, namespaced } = kind.resource;
  const { shortNames, categories, olderVersions = [] } = kind;
  return {
    apiVersion: apiVersionOf(customResourceDefinitions),
    kind: customResourceDefinitions.kind,
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind: name,
        listKind: `${name}List`,
        plural,
        singular: name.toLowerCase(),
        ...(shortNames && { shortNames }),
        ...(categories && { categories }),
      },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      ...(olderVersions.length > 0 && { conversion: { strategy: 'None' } }),
      versions: [
        ...olderVersions.map((older) => crdVersion(kind, older.name, false, structuralOf(kind, older))),
        crdVersion(kind, version, true, kind.structural),
      ],
    },
  };
}

function crdVersion(kind: Kind, name: string, storage: boolean, structural: Kind['structural']) {
  return {
    name,
    served: true,
    storage,
    subresources: { status: {} },
    additionalPrinterColumns: kind.printerColumns,
    schema: { openAPIV3Schema: rootSchema(kind, structural) },
  };
}

function structuralOf(kind: Kind, { name, spec, status }: { name: string; spec: TObject; status: TObject }) {
  const path = `${kind.resource.kind}.${name}`;
  return { spec: toStructural(spec, `${path}.spec`), status: toStructural(status, `${path}.status`) };
}

function rootSchema(kind: Kind, { spec, status }: Kind['structural']): StructuralSchema {
  return {
    type: 'object',
    description: kind.description,
    ...(!kind.specOptional && { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string', description: 'The version of this kind.' },
      kind: { type: 'string', description: 'The name of this kind.' },
      metadata: { type: 'object' },
      spec: withDefaultsDescribed(spec),
      status: withDefaultsDescribed(status),
    },
    ...(kind.rules && { 'x-kubernetes-validations': kind.rules }),
  };
}

/** `kubectl explain` prints no defaults, so the descriptions name them. */
function withDefaultsDescribed(schema: StructuralSchema): StructuralSchema {
  const { description, default: byDefault, properties, items, additionalProperties } = schema;
  return {
    ...schema,
    ...(description !== undefined && byDefault !== undefined
      ? { description: `${description} Default: ${defaultText(byDefault)}.` }
      : {}),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, property]) => [name, withDefaultsDescribed(property)]),
      ),
    }),
    ...(items && { items: withDefaultsDescribed(items) }),
    ...(additionalProperties && { additionalProperties: withDefaultsDescribed(additionalProperties) }),
  };
}

/** As a user would write it; `none` for an empty string, list, or object. */
function defaultText(value: unknown): string {
  if (value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)) return 'none';
  return typeof value === 'string' && !value.includes(' ') ? value : JSON.stringify(value);
}
