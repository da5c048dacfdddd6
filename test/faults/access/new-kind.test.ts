import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { AccessKind } from '../../../src/access/access-kind.ts';
import type { Route } from '../../../src/admission/routes.ts';
import { systemClock } from '../../../src/kit/clock.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The edits that docs/architecture/extend.md lists, for a new kind that behaves like ExecAccess. */
const lines: readonly (readonly [file: string, before: string, after: string])[] = [
  ['src/api/access/names.ts', "'ExecAccessTemplate'", "'ExecAccessTemplate', 'PortAccessTemplate'"],
  ['src/api/access/kinds.ts', 'import', "import { portAccess } from './port-access.ts';\nimport"],
  ['src/api/access/kinds.ts', '[podAccess, execAccess]', '[podAccess, execAccess, portAccess]'],
  ['src/access/access-kind.ts', 'import', "import { buildPortAccess } from './builders/port-access.ts';\nimport"],
  ['src/access/access-kind.ts', ': buildExecAccess', ': buildExecAccess,\n  PortAccessRequest: buildPortAccess'],
];
const newFiles = ['src/api/access/exec-access.ts', 'src/access/builders/exec-access.ts'];

describe('a third kind of access', function () {
  this.timeout(120_000);
  let copy: string;

  before(() => {
    copy = mkdtempSync(join(tmpdir(), 'new-kind-'));
    for (const name of [
      'src',
      'lint',
      'webhooks',
      'charts/crd-files.ts',
      'biome.json',
      'package.json',
      'tsconfig.json',
    ]) {
      cpSync(join(root, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const file of newFiles) {
      const text = read(file).replaceAll('Exec', 'Port').replaceAll('exec', 'port');
      writeFileSync(join(copy, file.replace('exec-', 'port-')), text);
    }
    for (const [file, was, is] of lines) {
      const text = read(file);
      assert.ok(text.includes(was), `${file} has no ${was}`);
      writeFileSync(join(copy, file), text.replace(was, is));
    }
  });
  after(() => rmSync(copy, { recursive: true, force: true }));

  const read = (file: string): string => readFileSync(join(copy, file), 'utf8');
  const touched = (): Set<string> =>
    new Set([...lines.map(([file]) => file), ...newFiles.map((file) => file.replace('exec-', 'port-'))]);
  const load = (file: string) => import(pathToFileURL(join(copy, file)).href);
  const run = (program: string, ...args: readonly string[]): void => {
    const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', program), args, {
      cwd: copy,
      encoding: 'utf8',
      // Leaves a core to the tests that run beside this one.
      env: { ...process.env, GOMAXPROCS: '1' },
    });
    assert.equal(status, 0, stdout + stderr);
  };

  it('touches only the files that docs/architecture/extend.md names', () => {
    const recipe = /### A kind of access\n.*?\n### /s.exec(
      readFileSync(join(root, 'docs/architecture/extend.md'), 'utf8'),
    );
    const named = new Set(recipe?.[0].match(/(?<=`)src\/[^`]+(?=`)/g));
    for (const file of touched()) assert.ok(named.has(file) || named.has(`${dirname(file)}/`), `${file} is not named`);
  });

  it('compiles everywhere that uses kinds of access', () => {
    const { compilerOptions } = JSON.parse(read('tsconfig.json'));
    const include = ['src/api', 'src/access', 'src/admission', 'src/cli', 'webhooks'];
    writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
    run('tsc', '--noEmit', '--project', 'tsconfig.json');
  });

  it('respects the layer rules', () =>
    run('biome', 'lint', '--vcs-enabled=false', '--error-on-warnings', ...touched()));

  it('has its CRDs, its webhooks, and their manifests', async () => {
    const { routes } = (await load('src/admission/routes.ts')) as { routes: readonly Route[] };
    const paths = routes.map(({ path }) => path).filter((path) => path.includes('portaccess'));
    assert.deepEqual(paths, [
      '/mutate-crds-wizardofoz-co-v1alpha1-portaccessrequest',
      '/validate-crds-wizardofoz-co-v1alpha1-portaccessrequest',
      '/mutate-crds-wizardofoz-co-v1alpha1-portaccesstemplate',
      '/validate-crds-wizardofoz-co-v1alpha1-portaccesstemplate',
    ]);
    const files = ['portaccesstemplates.yaml', 'portaccessrequests.yaml'];
    const { webhookFiles } = await load('webhooks/webhook-files.ts');
    const { crdFiles } = await load('charts/crd-files.ts');
    for (const file of files) assert.ok(webhookFiles('access').has(file) && crdFiles().has(file), file);
  });

  it('has its controllers', async () => {
    const { createAccessKinds } = await load('src/access/access-kind.ts');
    const kinds: AccessKind[] = createAccessKinds({ stores: { of: () => ({}) }, clock: systemClock });
    assert.deepEqual(kinds.map(({ requestKind, templateKind }) => [requestKind, templateKind]).at(-1), [
      'PortAccessRequest',
      'PortAccessTemplate',
    ]);
  });
});
