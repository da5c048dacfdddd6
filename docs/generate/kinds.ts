import { accessCrds } from '../../src/api/access/kinds.ts';
import { accessCategory } from '../../src/api/access/names.ts';
import { consumerKinds, providerKinds } from '../../src/api/binding/kinds.ts';
import { inventoryKinds } from '../../src/api/inventory/kinds.ts';
import { notifyKinds } from '../../src/api/notify/notification-subscription.ts';
import type { Kind } from '../../src/api/schema/kind.ts';
import type { StructuralSchema } from '../../src/api/schema/structural-schema.ts';
import { limitsOf, limitUnits } from './json-schema.ts';
import { code, codes, page, table } from './markdown.ts';
import {
  common,
  type Field,
  familiesOf,
  fieldsBelow,
  fieldsOfKind,
  isConditions,
  type SharedType,
  sharedTypes,
  textOf,
  typeKey,
} from './shared-fields.ts';

const legend = `Fields with * are required. \`[]\` is an item of a list, \`.*\` a value of a map. ${limitUnits} The API server rejects objects outside of limits and rules, and drops unknown fields, unless the meaning of their object says otherwise.`;

/** A page for each API group, by path below docs/. */
export const kindPages = (): [string, string][] => [
  [
    'reference/access-kinds.md',
    kindsPage(
      'Kinds of access',
      'src/api/access',
      accessCrds,
      `Requests, templates, votes, and sessions. For kubectl, ${codes(accessCrds.flatMap(({ shortNames = [] }) => shortNames))} are short names, and \`kubectl get ${accessCategory}\` lists all but the templates, of the kinds that you may list.`,
    ),
  ],
  [
    'reference/notify-kinds.md',
    kindsPage(
      'Kinds of notifications',
      'src/api/notify',
      notifyKinds,
      `Where messages go, and which. For kubectl, ${codes(notifyKinds.flatMap(({ shortNames = [] }) => shortNames))} are short names. See [notifications](../concepts/notifications.md).`,
    ),
  ],
  [
    'binding/kinds.md',
    kindsPage(
      'Kinds of binding',
      'src/api/binding',
      [...consumerKinds, ...providerKinds],
      'These are kinds of kube-bind. The server installs the first two in the consumer. The backend of the provider installs the others in the provider.',
    ),
  ],
  [
    'inventory/kinds.md',
    kindsPage(
      'Kinds of the inventory',
      'src/api/inventory',
      inventoryKinds,
      'Entries, registrations of components, and records of runs.',
    ),
  ],
];

/** Kinds with most fields in common are together, after these fields. Shared types are last. */
function kindsPage(title: string, source: string, kinds: readonly Kind[], intro: string): string {
  const sections = familiesOf(kinds).flatMap(sectionsOf);
  const types = sharedTypes(sections.flatMap(({ fields }) => fields));
  const ofTypes = [...types.values()].map(
    ({ title, paths, object }): Section => ({
      title,
      intro: `Fields of ${codes(paths)}.`,
      fields: fieldsBelow({ path: '', schema: object }),
      rules: ownRules('', object),
    }),
  );
  const titles = [...sections, ...ofTypes].map((section) => section.title);
  const twice = titles.find((name, index) => titles.indexOf(name) < index);
  if (twice)
    throw new Error(
      `${title}: two sections have the title ${twice}; name them apart in docs/generate/shared-fields.ts`,
    );
  return page(title, source, intro, legend, ...[...sections, ...ofTypes].flatMap((section) => printed(section, types)));
}

interface Rule {
  /** Empty for a rule of a whole object. */
  readonly path: string;
  readonly message: string;
  /** Belongs to the fields of an object, so to its type if that is shared. */
  readonly isOfObject: boolean;
}

interface Section {
  readonly title: string;
  readonly intro: string;
  readonly fields: readonly Field[];
  /** In addition to those in `fields`. */
  readonly rules: readonly Rule[];
}

/** What all kinds of a family have in common, and what each has of its own. */
function sectionsOf(family: readonly Kind[]): Section[] {
  const title = family.map(({ resource }) => resource.kind).join(' and ');
  const fields = family.length > 1 ? common(family.map(fieldsOfKind), textOf) : [];
  const rules = family.length > 1 ? common(family.map(rulesOfKind), ruleText) : [];
  const known = new Set([...fields.map(textOf), ...rules.map(ruleText)]);
  const own = family.map(
    (kind): Section => ({
      title: kind.resource.kind,
      intro: `${describe(kind)}${fields.length > 0 ? ` It has the ${linkTo(title, 'common fields')}.` : ''}`,
      fields: fieldsOfKind(kind).filter((field) => !known.has(textOf(field))),
      rules: rulesOfKind(kind).filter((rule) => !known.has(ruleText(rule))),
    }),
  );
  return fields.length > 0
    ? [{ title, intro: 'These kinds have these fields in common.', fields, rules }, ...own]
    : own;
}

function describe({ resource: { group, version, namespaced }, description }: Kind): string {
  return `${code(`${group}/${version}`)}, ${namespaced ? 'namespaced' : 'cluster-scoped'}. ${description}`;
}

type SharedTypes = ReadonlyMap<string, SharedType>;

function printed({ title, intro, fields, rules: others }: Section, types: SharedTypes): string[] {
  const rules = [...others, ...fields.flatMap((field) => rulesIn(field, types))];
  return [
    `## ${title}`,
    intro,
    ...(fields.length > 0
      ? [
          table(
            ['Field', 'Type', 'Meaning'],
            fields.flatMap((field) => rowsOf(field, types)),
          ),
        ]
      : []),
    ...(rules.length > 0 ? ['Rules:', listed(rules)] : []),
  ];
}

function rowsOf(field: Field, types: SharedTypes): string[][] {
  const { path, schema, isRequired } = field;
  const { description = '', default: byDefault } = schema;
  const type = types.get(typeKey(field));
  const limits = isConditions(schema) ? 'list of [metav1.Condition](../reference/conditions.md)' : limitsOf(schema);
  const row = [
    `${code(path)}${isRequired ? '*' : ''}`,
    [
      type ? limits.replace('object', linkTo(type.title, 'object')) : limits,
      ...(byDefault === undefined ? [] : [`default ${code(JSON.stringify(byDefault))}`]),
    ].join('; '),
    description,
  ];
  return [row, ...(type ? [] : fieldsBelow(field).flatMap((inner) => rowsOf(inner, types)))];
}

/** Paths with the same message share a line, without the name of the field before the message. */
function listed(rules: readonly Rule[]): string {
  const paths = new Map<string, string[]>();
  for (const { path, message } of rules) {
    const name = `${path.split('.').at(-1)} `;
    const text = message.startsWith(name) ? message.slice(name.length) : message;
    paths.set(text, [...(paths.get(text) ?? []), path]);
  }
  return [...paths]
    .map(([message, fields]) => [codes(fields), message].filter((text) => text !== '').join(': '))
    .map((line) => `- ${line}.`)
    .join('\n');
}

const ruleText = ({ path, message }: Rule): string => `${path}: ${message}`;

function rulesOfKind({ rules = [], structural: { spec, status } }: Kind): Rule[] {
  return [
    ...rules.map(({ message }) => ({ path: '', message, isOfObject: true })),
    ...ownRules('spec', spec),
    ...ownRules('status', status),
  ];
}

function rulesIn(field: Field, types: SharedTypes): Rule[] {
  const { path, schema } = field;
  if (types.has(typeKey(field))) return ownRules(path, schema).filter((rule) => !rule.isOfObject);
  return [...ownRules(path, schema), ...fieldsBelow(field).flatMap((below) => rulesIn(below, types))];
}

/** The meaning of a duration has its range. */
const isInMeaning = (message: string, { description = '' }: StructuralSchema): boolean =>
  message.startsWith('must be a Go duration') && description.includes('A Go duration');

/** Of the field, its items, and its values, but not of their fields. */
function ownRules(path: string, schema: StructuralSchema): Rule[] {
  const { items, additionalProperties: values, 'x-kubernetes-validations': rules = [] } = schema;
  return [
    ...rules
      .filter(({ message }) => !isInMeaning(message, schema))
      .map(({ message, fieldPath = '' }) => ({
        path: path === '' ? fieldPath.slice(1) : path + fieldPath,
        message,
        isOfObject: schema.properties !== undefined,
      })),
    ...(items ? ownRules(`${path}[]`, items) : []),
    ...(values ? ownRules(`${path}.*`, values) : []),
  ];
}

/** GitHub's anchor of a heading without punctuation. */
const linkTo = (title: string, text: string): string => `[${text}](#${title.toLowerCase().replaceAll(' ', '-')})`;
