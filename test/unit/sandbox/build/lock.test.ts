import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withLock } from '../../../../sandbox/build/lock.ts';

describe('sandbox build lock', () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lock-'));
    path = join(folder, 'deep', 'build.lock');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('admits one process at a time and leaves one small file', async () => {
    let inside = 0;
    let most = 0;
    const visit = async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
    };
    await Promise.all([1, 2, 3, 4].map(() => withLock(path, visit, { pollMs: 1 })));
    assert.equal(most, 1);
    assert.deepEqual(await readdir(join(folder, 'deep')), ['build.lock.4']);
  });

  it('reports the holder once', async () => {
    const waits: number[] = [];
    let letGo = (): void => undefined;
    const held = withLock(path, () => new Promise<void>((resolve) => (letGo = resolve)));
    const onWait = (pid: number): void => {
      waits.push(pid);
      letGo();
    };
    await new Promise((resolve) => setTimeout(resolve, 20));
    await Promise.all([held, withLock(path, async () => undefined, { pollMs: 1, onWait })]);
    assert.deepEqual(waits, [process.pid]);
  });

  it('is free again after the work failed', async () => {
    await assert.rejects(
      withLock(path, () => Promise.reject(new Error('no compiler'))),
      /no compiler/,
    );
    assert.equal(await withLock(path, async () => 'built'), 'built');
  });

  const dead = (): number => spawnSync('true').pid;
  const leftovers: Record<string, () => string> = {
    'a process that has ended': () => JSON.stringify({ pid: dead(), started: '' }),
    'a process whose id another process reuses': () => JSON.stringify({ pid: process.pid, started: 'long ago' }),
    'an unreadable holder': () => 'half a li',
  };
  for (const [whose, content] of Object.entries(leftovers)) {
    it(`takes over the lock of ${whose}`, async () => {
      await withLock(path, async () => undefined);
      await writeFile(`${path}.1`, content());
      let inside = 0;
      const visit = async (): Promise<number> => {
        inside += 1;
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
        return inside;
      };
      const left = await Promise.all([1, 2, 3].map(() => withLock(path, visit, { pollMs: 1 })));
      assert.deepEqual(left, [0, 0, 0]);
    });
  }
});
