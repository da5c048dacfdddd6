import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { KeyMutex } from '../../../src/kit/key-mutex.ts';

describe('KeyMutex', () => {
  it('runs the work of one key in order, one at a time, concurrently with other keys', async () => {
    const mutex = new KeyMutex();
    const began: string[] = [];
    const [first, second, other] = [
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
      Promise.withResolvers<void>(),
    ];
    const begin = (name: string, end: Promise<void>) => () => {
      began.push(name);
      return end;
    };
    const all = [
      mutex.run('a', begin('a1', first.promise)),
      mutex.run('a', begin('a2', second.promise)),
      mutex.run('b', begin('b1', other.promise)),
    ];
    await setImmediate();
    assert.deepEqual(began, ['a1', 'b1']);
    first.resolve();
    await all[0];
    await setImmediate();
    assert.deepEqual(began, ['a1', 'b1', 'a2']);
    second.resolve();
    other.resolve();
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
