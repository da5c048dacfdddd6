import assert from 'node:assert/strict';
import { ApiError } from '../../../src/kube/errors.ts';
import { retryDelayMs } from '../../../src/kube/retry.ts';

describe('the delay before a call is retried', () => {
  const delaysMs = (retryAfterMs: number): (number | undefined)[] =>
    [0, 1, 2, 3].map((attempt) => {
      const error = new ApiError(429, 'TooManyRequests', 'slow down', retryAfterMs);
      return retryDelayMs({ error, idempotent: false, attempt, random: () => 0.5 });
    });

  it('is the delay that the server asked for, without a backoff on top of it', () =>
    assert.deepEqual(delaysMs(1000), [1000, 1000, 1000, undefined]));

  it('is the backoff if that is longer', () => {
    assert.deepEqual(delaysMs(0), [125, 250, 500, undefined]);
    assert.deepEqual(delaysMs(300), [300, 300, 500, undefined]);
  });
});
