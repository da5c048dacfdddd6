import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { KeyMutex } from '../../../src/kit/key-mutex.ts';

describe('KeyMutex', () => {
  it('runs the work of one key in order, one at a time, concurrently with other keys', async () => {
    const mutex = new KeyMutex();
    const began: string[] = [];
    const ends: (() => void)[] = [];
    const run = (key: string, name: string): Promise<void> =>
      mutex.run(key, () => {
        began.push(name);
        return new Promise((resolve) => ends.push(resolve));
      });
    const all = [run('a', 'a1'), run('a', 'a2'), run('b', 'b1')];
    await setImmediate();
    assert.deepEqual(began, ['a1', 'b1']);
    ends[0]?.();
    await all[0];
    await setImmediate();
    assert.deepEqual(began, ['a1', 'b1', 'a2']);
    for (const end of ends) end();
    await Promise.all(all);
  });

  it('returns the result of the work, and continues after work that failed or threw', async () => {
    const mutex = new KeyMutex();
    const failing = mutex.run('a', () => Promise.reject(new Error('no')));
    const throwing = mutex.run('a', () => {
      throw new Error('at once');
    });
    const fine = mutex.run('a', async () => 7);
    await assert.rejects(failing, /no/);
    await assert.rejects(throwing, /at once/);
    assert.equal(await fine, 7);
  });

  it('keeps no state of a finished key', async () => {
    const mutex = new KeyMutex();
    await Promise.all([mutex.run('a', async () => 1), mutex.run('a', async () => 2)]);
    await setImmediate();
    assert.equal(mutex.size, 0);
  });
});
