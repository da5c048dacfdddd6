import assert from 'node:assert/strict';
import { backoffMs, jittered, retryAfterMsOf } from '../../../src/kit/backoff.ts';

describe('backoffMs', () => {
  const delay = (attempt: number, random: number, jitter?: 'half' | 'none') =>
    backoffMs({ baseMs: 100, capMs: 1000, attempt, random: () => random, ...(jitter ? { jitter } : {}) });

  it('doubles its upper bound up to the cap, for any number of attempts', () => {
    const bounds = [0, 1, 2, 3, 4, 5000].map((attempt) => delay(attempt, 1));
    assert.deepEqual(bounds, [100, 200, 400, 800, 1000, 1000]);
  });

  it('uses the whole range below the bound', () => {
    const delays = [0, 0.25, 0.999].map((random) => delay(1, random));
    assert.deepEqual(delays, [0, 50, 199.8]);
  });

  it('is at least half of the bound with half jitter', () => {
    const delays = [0, 0.5, 1].map((random) => delay(2, random, 'half'));
    assert.deepEqual(delays, [200, 300, 400]);
  });

  it('is exactly the bound without jitter', () => {
    const delays = [0, 1, 5000].map((attempt) => delay(attempt, 0.5, 'none'));
    assert.deepEqual(delays, [100, 200, 1000]);
  });
});

describe('retryAfterMsOf', () => {
  const cases: [what: string, error: unknown, expected: number][] = [
    ['an error that carries a delay', Object.assign(new Error('busy'), { retryAfterMs: 4000 }), 4000],
    ['an error without one', new Error('away'), 0],
    ['an error whose delay is no number', Object.assign(new Error('busy'), { retryAfterMs: '4' }), 0],
    ['an error whose delay never ends', Object.assign(new Error('busy'), { retryAfterMs: Infinity }), 0],
    ['a value that is no error', { retryAfterMs: 4000 }, 0],
  ];
  for (const [what, error, expected] of cases) {
    it(`is ${expected} ms for ${what}`, () => assert.equal(retryAfterMsOf(error), expected));
  }
});

describe('jittered', () => {
  it('is uniform around the interval', () => {
    const delays = [0, 0.5, 1].map((random) => jittered(1000, 0.25, () => random));
    assert.deepEqual(delays, [750, 1000, 1250]);
  });
});
