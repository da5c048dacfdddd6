import { writeFileSync } from 'node:fs';
import { layers, packages } from './layers.ts';

/** How many folders a file may lie below the folder of its layer. */
const depths = [0, 1, 2, 3];

const up = (levels: number): string => '../'.repeat(levels);

/** `target` as a file imports it that lies `depth` folders below the folder of `layer`: by the shortest way. */
function importOf(target: string, layer: string, depth: number): string {
  const from = layer.split('/');
  const to = target.split('/');
  const isShared = from.length > 1 && from[0] === to[0];
  const path = isShared ? `${up(depth + 1)}${to.slice(1).join('/')}` : `${up(depth + from.length)}${target}`;
  return /\.[a-z]+$/.test(target) ? path : `${path}/**`;
}

const rules = Object.entries(layers).flatMap(([layer, allowed]) => {
  const [top = ''] = layer.split('/');
  const message = `src/${layer}/ may import only ${[...allowed, layer].join(', ')} (docs/architecture/layers.md).`;
  const paths = Object.entries(packages)
    .filter(([, folder]) => folder !== top)
    .map(([name, folder]) => [name, `Only src/${folder}/ may import ${name}.`]);
  return depths.map((depth) => {
    const group = [`${up(depth + 1)}**`, ...allowed.map((target) => `!${importOf(target, layer, depth)}`)];
    const options = { patterns: [{ group, message }], paths: Object.fromEntries(paths) };
    const noRestrictedImports = { level: 'error', options };
    const includes = [`src/${layer}/${'*/'.repeat(depth)}*.{ts,tsx}`];
    return { includes, linter: { rules: { style: { noRestrictedImports } } } };
  });
});

const lines = rules.map((rule) => JSON.stringify(rule)).join(',\n');
writeFileSync(new URL('layers.json', import.meta.url), `{"overrides":[\n${lines}\n]}\n`);
