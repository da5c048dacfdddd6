import { writeFileSync } from 'node:fs';
import { layers, packages, readsConfig, roots } from './layers.ts';

/** How deep folders of `src/` lie: an import goes up to three levels. */
const ups = ['../', '../../', '../../../'];
const folders = Object.keys(layers).filter((folder) => !folder.includes('/'));

const upwards = (folder: string): string[] => ups.map((up) => `${up}${folder}/**`);

const rules = Object.entries(layers).map(([layer, allowed]) => {
  const [top = ''] = layer.split('/');
  const isDenied = (folder: string): boolean => folder !== layer && !allowed.includes(folder);
  const exceptions = allowed.filter((folder) => folder.includes('/'));
  const group = [
    ...folders.filter((folder) => isDenied(folder)).flatMap(upwards),
    ...exceptions.flatMap(upwards).map((pattern) => `!${pattern}`),
    ...roots.filter((file) => layer !== readsConfig || file !== 'config.ts').map((file) => `**/${file}`),
    '**/test/**',
    '**/sandbox/**',
  ];
  const message = `src/${layer}/ may import only ${[...allowed, layer].join(', ')} (docs/architecture.md, layers).`;
  const paths = Object.entries(packages)
    .filter(([, folder]) => folder !== top)
    .map(([name, folder]) => [name, `Only src/${folder}/ may import ${name}.`]);
  const options = { patterns: [{ group, message }], paths: Object.fromEntries(paths) };
  const noRestrictedImports = { level: 'error', options };
  return { includes: [`src/${layer}/**`], linter: { rules: { style: { noRestrictedImports } } } };
});

const lines = rules.map((rule) => JSON.stringify(rule)).join(',\n');
writeFileSync(new URL('layers.json', import.meta.url), `{"overrides":[\n${lines}\n]}\n`);
