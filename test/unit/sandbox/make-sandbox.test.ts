import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** What make would run if a source of the server had just changed. */
const wouldRun = (...args: string[]): string[] => {
  const env = { PATH: process.env['PATH'] };
  const changed = ['--what-if', 'src/main.ts'];
  return execFileSync('make', ['--dry-run', ...changed, ...args], {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
    .trimEnd()
    .split('\n');
};

describe('make sandbox', () => {
  it('builds the server before it starts it', () => {
    const build = 'npm run --silent build';
    const start = 'node --import tsx sandbox/main.ts';
    assert.deepEqual(wouldRun('sandbox', 'WITH=drawbridge').slice(-2), [build, start]);
    assert.deepEqual(wouldRun('sandbox').slice(-1), [start]);
    assert.ok(!wouldRun('sandbox').includes(build), 'a plane alone needs no server');
  });
});
