import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import pkg from '../../package.json' with { type: 'json' };

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly permissions?: object;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: { readonly target?: readonly string[] } };
  readonly steps: readonly Step[];
}

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const makeTargets = [...read('Makefile').matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name);

describe('workflows', () => {
  for (const name of readdirSync(join(root, '.github/workflows'))) {
    const text = read(`.github/workflows/${name}`);
    const jobs = Object.values((parse(text) as { jobs: Record<string, Job> }).jobs);

    it(`${name} runs only make targets that exist`, () => {
      const targets = jobs.flatMap(({ steps, strategy }) =>
        steps
          .flatMap(({ run }) => run ?? [])
          .map((run) => /^(?:sudo --preserve-env env "PATH=\$PATH" )?make (\S+)/.exec(run)?.[1] ?? run)
          .flatMap((target) => (target === '"$TARGET"' ? (strategy?.matrix.target ?? []) : target)),
      );
      assert.ok(targets.length > 0);
      assert.deepEqual(
        targets.filter((target) => !makeTargets.includes(target)),
        [],
      );
    });

    it(`${name} gives each job its own permissions and a timeout`, () => {
      assert.match(text, /^permissions: \{\}$/m);
      for (const job of jobs) assert.ok(job.permissions !== undefined && job['timeout-minutes'] !== undefined);
    });

    it(`${name} pins actions by commit, and says which version that is`, () => {
      const uses = text.split('\n').filter((line) => line.includes('uses:'));
      assert.ok(uses.length > 0);
      assert.deepEqual(
        uses.filter((line) => !/ uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
        [],
      );
    });
  }
});

describe('environments of developers', () => {
  const node = read('.nvmrc').trim();
  const [major] = node.split('.');

  it('have the Node of .nvmrc, and the image has its major version', () => {
    assert.match(read('.devcontainer/Dockerfile'), new RegExp(`^FROM node:${node}-`, 'm'));
    assert.match(read('Dockerfile'), new RegExp(`=node:${major}-`));
    assert.match(read('Dockerfile'), new RegExp(`/nodejs${major}-`));
  });

  it('have a newer Node than the oldest that is supported, which bundles and types are for', () => {
    const oldest = pkg.engines.node.replace('>=', '');
    assert.ok(oldest.localeCompare(node, 'en', { numeric: true }) < 0);
    assert.ok(pkg.devDependencies['@types/node'].startsWith(`${oldest}.`));
    for (const file of ['release/bundle.ts', 'test/run/bundle.ts'])
      assert.ok(read(file).includes(`'node${oldest}'`), file);
  });
});
