import { readFileSync } from 'node:fs';
import { isMap, type Node, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { type JsonSchema, limitsOf, limitUnits, resolve } from './json-schema.ts';
import { code, page, table } from './markdown.ts';

const chart = new URL('../../charts/drawbridge/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, chart), 'utf8');

/** Every value that can be set, with the comment above it in values.yaml and the limits of values.schema.json. */
export function chartPage(): string {
  const schema = JSON.parse(read('values.schema.json')) as JsonSchema;
  const values = parseDocument(read('values.yaml')).contents;
  if (!isMap<Node, Node>(values)) throw new Error('values.yaml is no map');
  return page(
    'drawbridge',
    'docs/generate/chart-values.ts, and values.yaml and values.schema.json beside this file',
    'Opens access to Pods for a while and closes it on time. [Install](../../docs/tasks/install.md) says how to build the image and check the installation; [upgrade](../../docs/tasks/upgrade.md) and [uninstall](../../docs/tasks/uninstall.md), what else to do then.',
    '```sh\nhelm install drawbridge charts/drawbridge --namespace drawbridge-system --create-namespace --wait\n```',
    '## Values',
    `Helm rejects unknown values and values outside of limits. ${limitUnits}`,
    table(['Value', 'Type', 'Default', 'Meaning'], rowsOf(values, schema, schema, '')),
  );
}

function rowsOf(values: YAMLMap<Node, Node>, schema: JsonSchema, root: JsonSchema, prefix: string): string[][] {
  return values.items.flatMap((pair, index) => {
    const path = `${prefix}${String(pair.key)}`;
    const found = schema.properties?.[String(pair.key)];
    if (!found || !pair.value) throw new Error(`${path}: values.schema.json and values.yaml do not match`);
    const own = resolve(found, root);
    // An object that takes any keys is one value; other objects are groups of values.
    if (isMap<Node, Node>(pair.value) && pair.value.items.length > 0 && own.properties) {
      return rowsOf(pair.value, own, root, `${path}.`);
    }
    const meaning = commentOf(pair, index === 0 ? values : undefined);
    if (meaning === undefined) throw new Error(`${path}: values.yaml has no comment for it`);
    return [[code(path), limitsOf(own, root), code(JSON.stringify(pair.value.toJSON())), meaning]];
  });
}

/** The parser attaches the comment above the first value of a map to the map. */
function commentOf({ key }: Pair<Node, Node | null>, parent?: YAMLMap): string | undefined {
  const comment = key.commentBefore ?? parent?.commentBefore;
  return comment?.replaceAll(/^ /gm, '');
}
