// Bundles the unit tests into four files in dist/test, and the reporter, for `make check`. Loading a thousand modules one by one takes longer.
import { readdirSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));
const outdir = 'dist/test';

/**
 * The folders and files of each bundle, which is one process, by path prefix below `test/`. The tests of the first prefixes run first:
 * they wait most, and later no other check uses the processor meanwhile. The last bundle also has all tests that no prefix matches.
 */
const bundles: Readonly<Record<string, readonly string[]>> = {
  'unit-access': ['unit/access/'],
  'unit-admission': ['unit/admission/server', 'unit/admission/', 'unit/charts/', 'unit/webhooks/', 'fuzz/'],
  'unit-features': ['unit/examples/sdk/', 'unit/inventory/http/', 'unit/inventory/', 'unit/binding/'],
  'unit-rest': ['unit/observe/', ''],
};

/** The test files of each bundle, in the order in which they run. */
function filesByBundle(): Map<string, readonly string[]> {
  const files = ['unit', 'fuzz'].flatMap((folder) =>
    readdirSync(`${root}test/${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `${folder}/${name}`)
      .sort(),
  );
  const remaining = new Set(files);
  const take = (prefix: string): string[] =>
    [...remaining].filter((file) => file.startsWith(prefix) && remaining.delete(file));
  return new Map(Object.entries(bundles).map(([name, prefixes]) => [name, prefixes.flatMap(take)]));
}

/** Resolves `bundle:NAME` to a module that imports the test files of the bundle. */
const bundleEntries: Plugin = {
  name: 'bundle-entries',
  setup: ({ onResolve, onLoad }) => {
    const byBundle = filesByBundle();
    onResolve({ filter: /^bundle:/ }, ({ path }) => ({ path: path.replace('bundle:', ''), namespace: 'bundle' }));
    onLoad({ filter: /./, namespace: 'bundle' }, ({ path }) => ({
      contents: (byBundle.get(path) ?? []).map((file) => `import './test/${file}';`).join('\n'),
      resolveDir: root,
    }));
  },
};

/** Keeps the `import.meta` of each module that of its source, because tests find files relative to it. */
const sourceMeta: Plugin = {
  name: 'source-meta',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const contents = text
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
      return { contents, loader: 'ts' };
    }),
};

/** Bundles the few functions that the tests use of the Kubernetes library. Loading all of it takes a second. */
const clientLibrary: Plugin = {
  name: 'client-library',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({
      path: fileURLToPath(import.meta.resolve('@kubernetes/client-node')),
      sideEffects: false,
    })),
};

rmSync(`${root}${outdir}`, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: [
    ...Object.keys(bundles).map((name) => ({ in: `bundle:${name}`, out: name })),
    { in: 'test/run/totals-reporter.ts', out: 'totals-reporter' },
  ],
  outdir,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node22.19',
  sourcemap: 'external',
  sourcesContent: false,
  logLevel: 'warning',
  plugins: [bundleEntries, sourceMeta, clientLibrary],
});
