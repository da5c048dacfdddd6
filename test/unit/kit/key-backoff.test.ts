import assert from 'node:assert/strict';
import { KeyBackoff } from '../../../src/kit/backoff.ts';

describe('the backoff of keys', () => {
  const [one, other] = [{}, {}];
  const longest = (): KeyBackoff<object> => new KeyBackoff({ baseMs: 200, capMs: 1000, random: () => 1 });

  it('is zero before a failure', () => {
    assert.equal(longest().delayMs(one), 0);
  });

  it('doubles with each consecutive failure, up to its cap', () => {
    const backoff = longest();
    const delays = [1, 2, 3, 4].map(() => {
      backoff.failed(one);
      return backoff.delayMs(one);
    });
    assert.deepEqual(delays, [200, 400, 800, 1000]);
    assert.equal(backoff.count(one), 4);
  });

  it('is separate for each key, and reset by a success', () => {
    const backoff = longest();
    backoff.failed(one);
    assert.equal(backoff.delayMs(other), 0);
    backoff.forget(one);
    assert.deepEqual([backoff.delayMs(one), backoff.count(one)], [0, 0]);
  });
});
