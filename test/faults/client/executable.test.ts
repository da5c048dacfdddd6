import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import pkg from '../../../package.json' with { type: 'json' };

const root = fileURLToPath(new URL('../../..', import.meta.url));
const baseUrl = 'https://releases.example/v1';

describe('the single executable of the client', function () {
  this.timeout(240_000);
  let folder: string;

  const run = (command: string, args: readonly string[], env: object = {}): string => {
    const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env } } as const;
    const { status, stdout, stderr, error } = spawnSync(command, args, options);
    assert.equal(status, 0, `${command} ${args.join(' ')}: ${error ?? ''}${stderr}${stdout}`);
    return stdout;
  };
  const release = (script: string, env: object = {}): string =>
    run(process.execPath, ['--import', join(root, 'node_modules/tsx/dist/esm/index.mjs'), join(root, script)], env);
  const manifest = () => parse(readFileSync(join(root, 'dist/krew/drawbridge.yaml'), 'utf8'));

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-executable-'));
    release('release/sea.ts');
    release('release/krew.ts', { BASE_URL: baseUrl });
    const [{ uri }] = manifest().spec.platforms;
    run('tar', ['-xzf', join(root, 'dist/sea', uri.slice(baseUrl.length + 1))]);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('runs without Node', () => {
    const version = `drawbridge ${pkg.version}\n`;
    assert.equal(run(join(folder, 'drawbridge'), ['version', '--client'], { PATH: '' }), version);
  });

  it('is a plugin of kubectl by the name of its link', () => {
    symlinkSync('drawbridge', join(folder, 'kubectl-drawbridge'));
    symlinkSync('drawbridge', join(folder, 'kubectl_complete-drawbridge'));
    assert.match(run(join(folder, 'kubectl-drawbridge'), ['help']), /^ {2}kubectl drawbridge COMMAND \[flags\]$/m);
    assert.match(run(join(folder, 'kubectl_complete-drawbridge'), ['requ']), /^request\t/m);
  });

  it('is what the Krew manifest names, with its checksum', () => {
    const [{ uri, sha256, bin, files }] = manifest().spec.platforms;
    const archive = readFileSync(join(root, 'dist/sea', uri.slice(baseUrl.length + 1)));
    assert.equal(sha256, createHash('sha256').update(archive).digest('hex'));
    const archived = run('tar', ['-tzf', join(root, 'dist/sea', uri.slice(baseUrl.length + 1))])
      .trim()
      .split('\n');
    assert.ok(archived.includes(bin), `${bin} in ${archived}`);
    for (const { from } of files ?? []) assert.ok(archived.includes(from), `${from} in ${archived}`);
  });
});
