import assert from 'node:assert/strict';
import fc from 'fast-check';
import { StatusRateLimiter } from '../../../../src/binding/sync/status-rate-limiter.ts';

const never = Number.POSITIVE_INFINITY;

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

  it('allows five writes for a hundred changes in a second, including the last', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(999), { minLength: 100, maxLength: 100 }), (instants) => {
        const limiter = new StatusRateLimiter();
        const writes: number[] = [];
        let dueMs = never;
        const due = [...instants].sort((a, b) => a - b);
        for (let nowMs = 0; nowMs < 2_000; nowMs++) {
          if (due[0] !== nowMs && dueMs !== nowMs) continue;
          while (due[0] === nowMs) due.shift();
          const waitMs = limiter.waitMs('a', nowMs);
          if (waitMs > 0) {
            dueMs = nowMs + waitMs;
            continue;
          }
          limiter.recordWrite('a', nowMs);
          writes.push(nowMs);
          dueMs = never;
        }
        assert.ok(writes.length <= 5, `${writes}`);
        assert.ok((writes.at(-1) ?? 0) >= Math.max(...instants));
      }),
      { seed: 14 },
    );
  });
});
