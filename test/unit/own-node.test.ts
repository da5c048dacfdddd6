import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const pinned = readFileSync(join(root, '.nvmrc'), 'utf8').trim();

describe('the Makefile', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-own-node-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The versions that make would fetch on a machine with this Node. */
  const fetched = (version: string, ...args: string[]): string[] => {
    const itsVersion = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"${version}"})`;
    const node = `#!/bin/sh\nexec '${process.execPath}' --import '${itsVersion}' "$@"\n`;
    writeFileSync(join(folder, 'node'), node, { mode: 0o755 });
    const env = { PATH: `${folder}:${process.env['PATH']}`, XDG_CACHE_HOME: folder };
    const lines = execFileSync('make', ['--dry-run', 'node_modules', ...args], {
      cwd: root,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return [...lines.matchAll(/^ *npm install .*@(\S+)/gm)].map(([, fetched = '']) => fetched);
  };

  it('fetches a Node of its own if the Node of the machine is older than package.json allows', () => {
    assert.deepEqual(fetched('18.20.8'), [pinned]);
    assert.deepEqual(fetched('22.9.0'), [pinned]);
  });

  it('uses the Node of the machine if package.json allows it', () => {
    for (const version of ['22.19.0', '24.0.0', '26.12.1']) assert.deepEqual(fetched(version), []);
  });

  it('fetches the version that NODE names', () => assert.deepEqual(fetched('24.0.0', 'NODE=26.1.0'), ['26.1.0']));
});
