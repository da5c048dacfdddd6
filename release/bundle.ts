import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { root } from './archive.ts';

export interface Bundle {
  /** The entry, from the root of the repository. */
  readonly entry: string;
  readonly outfile: string;
  readonly format: 'esm' | 'cjs';
  /** What the file begins with. */
  readonly banner?: string;
  /** Values of global constants, as JSON. */
  readonly define?: Readonly<Record<string, string>>;
}

/** Bundles a program with all that it imports into one minified file. */
export async function bundle({ entry, outfile, format, banner, define = {} }: Bundle): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: resolve(root, outfile),
    bundle: true,
    platform: 'node',
    format,
    target: 'node22.19',
    minify: true,
    logLevel: 'warning',
    define,
    plugins: [kubernetesLibrary, undici, filesOfTheirOwn],
    ...(banner === undefined ? {} : { banner: { js: banner } }),
  });
}

/** The page of the console, by path: gzip in base64. */
export async function consoleAssets(): Promise<Record<string, string>> {
  const folder = join(root, 'src/client/console/page');
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['main', 'player'].map((name) => join(folder, `${name}.tsx`)),
    outdir: '/',
    write: false,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
    plugins: [clientModules],
  });
  const html = await readFile(join(folder, 'index.html'), 'utf8');
  const files = [
    ...outputFiles.map(({ path, contents }) => [path, contents] as const),
    ['/index.html', html] as const,
    ['/player.html', html.replaceAll('/main.', '/player.')] as const,
  ];
  return Object.fromEntries(
    files.map(([path, contents]) => [path, gzipSync(contents, { level: 9 }).toString('base64')]),
  );
}

/** What the page imports of the client would bring the schemas of all kinds, which it does not use. */
const clientModules: Plugin = {
  name: 'client-modules',
  setup({ onResolve }) {
    onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path),
      sideEffects: false,
    }));
    // A browser has none: nothing that the page uses may need them.
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }));
  },
};

/** The Kubernetes library does not say that its modules may be omitted, so esbuild would keep 700 of them that nothing uses. */
const kubernetesLibrary: Plugin = {
  name: 'kubernetes-library',
  setup({ onResolve }) {
    const folder = join(root, 'node_modules/@kubernetes/client-node/dist');
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({ path: join(folder, 'index.js'), sideEffects: false }));
    onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir }) => {
      const file = resolve(resolveDir, path);
      return file.startsWith(folder) && file.endsWith('.js') ? { path: file, sideEffects: false } : undefined;
    });
  },
};

/** The index of undici also loads fetch, caches, mocks, and WebSockets, which takes a fifth of the start of the client. */
const undici: Plugin = {
  name: 'undici',
  setup({ onLoad }) {
    const folder = join(root, 'node_modules/undici');
    const modules = {
      Agent: 'dispatcher/agent',
      Client: 'dispatcher/client',
      Pool: 'dispatcher/pool',
      ProxyAgent: 'dispatcher/proxy-agent',
      buildConnector: 'core/connect',
      errors: 'core/errors',
    };
    const contents = [
      "Object.assign(require('./lib/dispatcher/dispatcher').prototype, require('./lib/api'));",
      ...Object.entries(modules).map(([name, path]) => `exports.${name} = require('./lib/${path}');`),
    ].join('\n');
    onLoad({ filter: /[\\/]node_modules[\\/]undici[\\/]index\.js$/ }, () => ({ contents, resolveDir: folder }));
  },
};

/** What the program imports only when it needs it is a file beside it, so that others do not load it. */
const filesOfTheirOwn: Plugin = {
  name: 'files-of-their-own',
  setup({ onResolve }) {
    onResolve({ filter: /^\..*\.ts$/ }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path: `./${basename(path, '.ts')}.mjs`, external: true } : undefined,
    );
  },
};
