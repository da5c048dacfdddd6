import assert from 'node:assert/strict';
import { type CacheInputs, cacheKey } from '../../../../sandbox/build/cache-key.ts';

describe('sandbox cache key', () => {
  const inputs: CacheInputs = {
    moduleFiles: ['module a', 'sum of a'],
    flags: ['-trimpath', '-s -w'],
    goVersion: 'go version go1.26.8 linux/amd64\n',
    platform: 'linux/x64',
  };

  it('is the same folder name for the same inputs', () => {
    assert.match(cacheKey(inputs), /^[0-9a-f]{64}$/);
    assert.equal(cacheKey(inputs), cacheKey({ ...inputs, goVersion: inputs.goVersion.trim() }));
  });

  const changes: Record<string, Partial<CacheInputs>> = {
    'a module file': { moduleFiles: ['module a', 'sum of b'] },
    'the border between two module files': { moduleFiles: ['module asum', ' of a'] },
    'a flag': { flags: ['-trimpath', '-s'] },
    'the Go version': { goVersion: 'go version go1.26.9 linux/amd64' },
    'the platform': { platform: 'darwin/arm64' },
  };
  for (const [what, change] of Object.entries(changes)) {
    it(`changes with ${what}`, () => assert.notEqual(cacheKey({ ...inputs, ...change }), cacheKey(inputs)));
  }
});
