import { accessCrds } from '../../src/api/access/kinds.ts';
import { consumerKinds, providerKinds } from '../../src/api/binding/kinds.ts';
import { inventoryKinds } from '../../src/api/inventory/kinds.ts';
import type { Kind } from '../../src/api/schema/kind.ts';
import type { StructuralSchema } from '../../src/api/schema/structural-schema.ts';
import { limitsOf } from './json-schema.ts';
import { code, page, table } from './markdown.ts';

const legend =
  'Fields marked with * are required. `[]` stands for an item of a list, `.*` for a value of a map. A Condition has the fields of `metav1.Condition`; kube-bind adds `severity`. The API server rejects objects outside these limits and drops unknown fields, unless the meaning of their object says otherwise.';

/** A page for each API group, by file name. */
export const kindPages = (): [string, string][] => [
  [
    'access-kinds.md',
    kindsPage('Kinds of access', 'src/api/access', accessCrds, 'Requests, templates, votes, and sessions.'),
  ],
  [
    'binding-kinds.md',
    kindsPage(
      'Kinds of binding',
      'src/api/binding',
      [...consumerKinds, ...providerKinds],
      'These are kinds of kube-bind. The server installs the first two in the consumer. The backend of the provider installs the others in the provider.',
    ),
  ],
  [
    'inventory-kinds.md',
    kindsPage(
      'Kinds of the inventory',
      'src/api/inventory',
      inventoryKinds,
      'Entries, registrations of components, and records of runs.',
    ),
  ],
];

const kindsPage = (title: string, source: string, kinds: readonly Kind[], intro: string): string =>
  page(title, source, intro, legend, ...kinds.flatMap(kindSection));

function kindSection(kind: Kind): string[] {
  const { group, version, kind: name, namespaced } = kind.resource;
  const { spec, status } = kind.structural;
  const rules = [
    ...(kind.rules ?? []).map(({ message }) => message),
    ...rulesIn('spec', spec),
    ...rulesIn('status', status),
  ];
  return [
    `## ${name}`,
    `${code(`${group}/${version}`)}, ${namespaced ? 'namespaced' : 'cluster-scoped'}. ${kind.description}`,
    table(
      ['Field', 'Type', 'Default', 'Meaning'],
      [...rowsOf('spec', spec, !kind.specOptional), ...rowsOf('status', status, false)],
    ),
    ...(rules.length > 0
      ? [
          'The API server also rejects objects that violate one of these rules:',
          rules.map((rule) => `- ${rule}.`).join('\n'),
        ]
      : []),
  ];
}

function rowsOf(path: string, schema: StructuralSchema, required: boolean): string[][] {
  const { description = '', default: byDefault } = schema;
  const isConditions = schema['x-kubernetes-list-map-keys']?.[0] === 'type';
  const row = [
    `${code(path)}${required ? ' *' : ''}`,
    isConditions ? 'list of Condition' : limitsOf(schema),
    byDefault === undefined ? '' : code(JSON.stringify(byDefault)),
    description,
  ];
  if (isConditions) return [row];
  return [row, ...below(path, schema).flatMap(([inner, field, isRequired]) => rowsOf(inner, field, isRequired))];
}

/** The fields of an object, of the items of a list, or of the values of a map. */
function below(path: string, schema: StructuralSchema): [string, StructuralSchema, boolean][] {
  if (schema.items?.properties) return below(`${path}[]`, schema.items);
  if (schema.additionalProperties?.properties) return below(`${path}.*`, schema.additionalProperties);
  return Object.entries(schema.properties ?? {}).map(([name, field]) => [
    `${path}.${name}`,
    field,
    schema.required?.includes(name) ?? false,
  ]);
}

function rulesIn(path: string, schema: StructuralSchema): string[] {
  const own = (schema['x-kubernetes-validations'] ?? []).map(
    ({ message, fieldPath = '' }) => `${code(path + fieldPath)}: ${message}`,
  );
  const inner = schema.items ? rulesIn(`${path}[]`, schema.items) : [];
  const ofValues = schema.additionalProperties ? rulesIn(`${path}.*`, schema.additionalProperties) : [];
  const ofFields = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    rulesIn(`${path}.${name}`, field),
  );
  return [...own, ...inner, ...ofValues, ...ofFields];
}
