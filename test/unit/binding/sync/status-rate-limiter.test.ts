import assert from 'node:assert/strict';
import { StatusRateLimiter } from '../../../../src/binding/sync/status-rate-limiter.ts';

describe('the rate limit of status writes', () => {
  it('allows the first write at once, and then one per key every 300 ms', () => {
    const limiter = new StatusRateLimiter();
    assert.equal(limiter.waitMs('a', 1_000), 0);
    limiter.recordWrite('a', 1_000);
    assert.equal(limiter.waitMs('a', 1_000), 300);
    assert.equal(limiter.waitMs('a', 1_299), 1);
    assert.equal(limiter.waitMs('a', 1_300), 0);
    assert.equal(limiter.waitMs('b', 1_000), 0);
  });
});
