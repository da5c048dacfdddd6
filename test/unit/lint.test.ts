import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Planted {
  readonly fault: string;
  readonly rule: string;
  readonly files: Readonly<Record<string, string>>;
}

const planted: readonly Planted[] = [
  {
    fault: 'an import upwards',
    rule: 'noRestrictedImports',
    files: {
      'src/engine/a.ts': "import { b } from '../access/b.ts';\nexport const a = b;\n",
      'src/access/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'an import of nothing but a type upwards',
    rule: 'noRestrictedImports',
    files: {
      'src/engine/a.ts': "import type { B } from '../access/b.ts';\nexport type A = B;\n",
      'src/access/b.ts': 'export type B = 1;\n',
    },
  },
  {
    fault: 'an import of one feature by another',
    rule: 'noRestrictedImports',
    files: {
      'src/access/lifecycle/a.ts': "import { b } from '../../binding/b.ts';\nexport const a = b;\n",
      'src/binding/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'an effect in the pure core of the inventory',
    rule: 'noRestrictedImports',
    files: {
      'src/inventory/core/a.ts': "import { b } from '../../kube/b.ts';\nexport const a = b;\n",
      'src/kube/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'an import by the pure core of the inventory of what is around it',
    rule: 'noRestrictedImports',
    files: {
      'src/inventory/core/a.ts': "import { b } from '../manager/b.ts';\nexport const a = b;\n",
      'src/inventory/manager/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'the same by a folder of the core',
    rule: 'noRestrictedImports',
    files: {
      'src/inventory/core/steps/a.ts': "import { b } from '../../b.ts';\nexport const a = b;\n",
      'src/inventory/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'an import of what opens features',
    rule: 'noRestrictedImports',
    files: {
      'src/binding/a.ts': "import { b } from '../features/b.ts';\nexport const a = b;\n",
      'src/features/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'what is not a policy of another layer',
    rule: 'noRestrictedImports',
    files: {
      'src/admission/handlers/a.ts': "import { b } from '../../access/life/b.ts';\nexport const a = b;\n",
      'src/access/lifecycle/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'an import of the composition root',
    rule: 'noRestrictedImports',
    files: {
      'src/kube/a.ts': "import { b } from '../config.ts';\nexport const a = b;\n",
      'src/config.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'a cycle',
    rule: 'noImportCycles',
    files: {
      'src/kit/a.ts': "import { b } from './b.ts';\nexport const a = () => b;\n",
      'src/kit/b.ts': "import { a } from './a.ts';\nexport const b = () => a;\n",
    },
  },
  {
    fault: 'a cycle of types alone',
    rule: 'noImportCycles',
    files: {
      'src/kit/a.ts': "import type { B } from './b.ts';\nexport type A = B | 1;\n",
      'src/kit/b.ts': "import type { A } from './a.ts';\nexport type B = A | 2;\n",
    },
  },
  { fault: 'Date.now()', rule: 'noRestrictedGlobals', files: { 'src/engine/a.ts': 'export const a = Date.now();\n' } },
  { fault: 'new Date()', rule: 'noRestrictedGlobals', files: { 'src/access/a.ts': 'export const a = new Date();\n' } },
  {
    fault: 'setTimeout()',
    rule: 'noRestrictedGlobals',
    files: { 'src/kube/a.ts': 'export const a = () => setTimeout(() => {}, 1);\n' },
  },
  { fault: 'process.env', rule: 'noProcessEnv', files: { 'src/kube/a.ts': "export const a = process.env['A'];\n" } },
  {
    fault: 'express outside admission',
    rule: 'noRestrictedImports',
    files: { 'src/access/a.ts': "import express from 'express';\nexport const a = express;\n" },
  },
  {
    fault: 'undici outside kube',
    rule: 'noRestrictedImports',
    files: { 'src/admission/a.ts': "import { request } from 'undici';\nexport const a = request;\n" },
  },
  {
    fault: 'an import of the server by an example',
    rule: 'noRestrictedImports',
    files: {
      'examples/inventory/a.ts': "import { b } from '../../src/kit/b.ts';\nexport const a = b;\n",
      'src/kit/b.ts': 'export const b = 1;\n',
    },
  },
  {
    fault: 'syntax of an example that plain Node cannot run',
    rule: 'noParameterProperties',
    files: { 'examples/inventory/a.ts': 'export class A {\n  constructor(readonly b: number) {}\n}\n' },
  },
  {
    fault: 'a floating promise',
    rule: 'noFloatingPromises',
    files: {
      'src/kit/a.ts': 'const work = async (): Promise<void> => {};\nexport function a(): void {\n  work();\n}\n',
    },
  },
];

const clean = {
  'src/access/a.ts': "import { b } from '../kit/b.ts';\n\nexport const a = b;\n",
  'src/kit/b.ts': 'export const b = 1;\n',
  'src/admission/a.ts': "import { c } from '../access/policy/c.ts';\n\nexport const a = c;\n",
  'src/access/policy/c.ts': 'export const c = 1;\n',
  'src/inventory/core/steps/a.ts':
    "import { b } from '../../policy/b.ts';\nimport { c } from '../c.ts';\n\nexport const a = b + c;\n",
  'src/inventory/policy/b.ts': 'export const b = 1;\n',
  'src/inventory/core/c.ts': 'export const c = 1;\n',
};

describe('lint', function () {
  this.timeout(30_000);
  let folder: string;
  let errors: readonly string[];

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'lint-'));
    cpSync(join(root, 'biome.json'), join(folder, 'biome.json'));
    cpSync(join(root, 'lint/layers.json'), join(folder, 'lint/layers.json'));
    for (const [number, files] of [clean, ...planted.map(({ files }) => files)].entries()) plant(folder, number, files);
    errors = lint(folder);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** The rules that the files of a case violate. */
  const rulesBroken = (number: number): readonly string[] => {
    const file = new RegExp(`/[abc]${number}\\.ts,`);
    return errors.filter((line) => file.test(line)).map((line) => /title=[^,]*?(\w+),/.exec(line)?.[1] ?? line);
  };

  for (const [index, { fault, rule }] of planted.entries()) {
    it(`rejects ${fault}`, () => assert.ok(rulesBroken(index + 1).includes(rule), errors.join('\n')));
  }

  it('accepts code without violations', () => assert.deepEqual(rulesBroken(0), []));
});

/** Writes the files of one case. Its number in their names distinguishes them from those of other cases. */
function plant(folder: string, number: number, files: Readonly<Record<string, string>>): void {
  const numbered = (text: string): string => text.replaceAll(/\b([abc])\.ts/g, `$1${number}.ts`);
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, numbered(name));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, numbered(content));
  }
}

/** The errors, one on each line, with `title=RULE` and `file=PATH,`. All cases share one run, because each run is slow. */
function lint(folder: string): readonly string[] {
  const biome = join(root, 'node_modules/.bin/biome');
  const args = ['check', '--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none', '.'];
  const { stdout } = spawnSync(biome, args, { cwd: folder, encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.startsWith('::error'));
}
