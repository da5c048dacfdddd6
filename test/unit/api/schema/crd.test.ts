import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { crdFiles, crdFolders } from '../../../../charts/crd-files.ts';
import { accessCrds, accessKinds } from '../../../../src/api/access/kinds.ts';
import { accessCategory } from '../../../../src/api/access/names.ts';
import { consumerKinds, providerKinds } from '../../../../src/api/binding/kinds.ts';
import { inventoryKinds } from '../../../../src/api/inventory/kinds.ts';
import { notifyKinds } from '../../../../src/api/notify/notification-subscription.ts';
import { customResourceDefinition } from '../../../../src/api/schema/crd.ts';
import { readBySchema } from '../../../../src/api/schema/read.ts';
import type { StructuralSchema } from '../../../../src/api/schema/structural-schema.ts';
import { mergePatched } from '../../../../src/kit/merge-patch.ts';

/** Client-side apply keeps the whole object in an annotation, and annotations are limited to this many bytes. */
const ANNOTATION_LIMIT = 262_144;

/** `kubectl get access` lists what happens, not the templates. */
const typedOften: Readonly<Record<string, { readonly short: string; readonly category?: string }>> = {
  PodAccessTemplate: { short: 'pat' },
  ExecAccessTemplate: { short: 'eat' },
  PodAccessRequest: { short: 'par', category: accessCategory },
  ExecAccessRequest: { short: 'ear', category: accessCategory },
  AccessVote: { short: 'av', category: accessCategory },
  NotificationProvider: { short: 'anp', category: accessCategory },
  NotificationSubscription: { short: 'ans', category: accessCategory },
  AccessSession: { short: 'asess', category: accessCategory },
};

const chart = new URL('../../../../charts/drawbridge/', import.meta.url);

interface Crd {
  spec: {
    names: object;
    scope: string;
    versions: { schema: { openAPIV3Schema: StructuralSchema }; additionalPrinterColumns: { name: string }[] }[];
  };
}

describe('the generated CRDs', () => {
  for (const [part, kinds] of Object.entries(crdFolders)) {
    it(`in ${part} match the schemas: run \`npx tsx charts/generate-crds.ts\` when this fails`, () => {
      const folder = new URL(`${part}/`, chart);
      const files = crdFiles(kinds);
      assert.deepEqual(readdirSync(folder).sort(), [...files.keys()].sort());
      for (const [name, content] of files) assert.equal(readFileSync(new URL(name, folder), 'utf8'), content);
    });

    it(`in ${part} mean the same in YAML 1.1, which kubectl and Helm read`, () => {
      for (const content of crdFiles(kinds).values())
        assert.deepEqual(parse(content, { version: '1.1' }), parse(content));
    });
  }

  const ourKinds = [...accessCrds, ...inventoryKinds, ...notifyKinds];
  for (const kind of [...ourKinds, ...consumerKinds, ...providerKinds]) {
    const crd = customResourceDefinition(kind);
    const { spec } = crd as unknown as Crd;
    const roots = spec.versions.map(({ schema }) => schema.openAPIV3Schema);

    describe(kind.resource.kind, () => {
      it('fits client-side apply with a margin', () => {
        assert.ok(JSON.stringify(crd).length < ANNOTATION_LIMIT / 4);
      });

      it('explains every field', () => {
        const silent = roots.flatMap(({ properties: { metadata: _, ...fields } = {} }) =>
          Object.entries(fields).flatMap(([name, field]) => unexplained(field, name)),
        );
        assert.deepEqual(silent, []);
      });

      it('has defaults that its own schema accepts', () => {
        for (const [path, field] of roots.flatMap((root) => [...fieldsOf(root, kind.resource.kind)])) {
          if (field.default === undefined) continue;
          const { default: value, ...withoutDefault } = field;
          const read = readBySchema(withoutDefault, value, path);
          // A default may leave out fields that have defaults, too.
          assert.ok(read.ok, path);
          assert.deepEqual(mergePatched(read.value, value), read.value);
        }
      });

      if (!ourKinds.includes(kind)) return;
      it('has short names and a category only if people type it often', () => {
        const { plural, kind: name } = kind.resource;
        const { short, category } = typedOften[name] ?? {};
        assert.deepEqual(spec.names, {
          kind: name,
          listKind: `${name}List`,
          plural,
          singular: name.toLowerCase(),
          ...(short === undefined ? {} : { shortNames: [short] }),
          ...(category === undefined ? {} : { categories: [category] }),
        });
      });
    });
  }

  it('have no kind whose name is that of the category, which would hide the kind', () => {
    const names = [...ourKinds, ...consumerKinds, ...providerKinds].flatMap(({ resource, shortNames = [] }) => [
      resource.plural,
      resource.kind.toLowerCase(),
      ...shortNames,
    ]);
    assert.ok(!names.includes(accessCategory));
    assert.equal(new Set(names).size, names.length, 'each name is that of one kind');
  });

  it('have the columns of Oz first', () => {
    const columns = accessKinds.map(({ printerColumns }) => printerColumns.map(({ name }) => name).join(' '));
    const template = 'Ready State Groups Duration Max Approvals Reason Why';
    const request = 'Template Pod Ready State Who Until Age Reason Why';
    assert.deepEqual(columns, [template, request, template, request]);
  });
});

/** Every field below `schema` with its path, including items and map values. */
function* fieldsOf(schema: StructuralSchema, path: string): Generator<[string, StructuralSchema]> {
  yield [path, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* fieldsOf(property, `${path}.${name}`);
  if (schema.items) yield* fieldsOf(schema.items, `${path}[]`);
  if (schema.additionalProperties) yield* fieldsOf(schema.additionalProperties, `${path}.*`);
}

/** The named fields without a description; `kubectl explain` shows only named fields. */
function unexplained(schema: StructuralSchema, path: string): string[] {
  return [...fieldsOf(schema, path)]
    .filter(([name, field]) => !name.endsWith('[]') && !name.endsWith('.*') && !field.description)
    .map(([name]) => name);
}
