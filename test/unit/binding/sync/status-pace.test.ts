import assert from 'node:assert/strict';
import fc from 'fast-check';
import { StatusPace } from '../../../../src/binding/sync/status-pace.ts';

const never = Number.POSITIVE_INFINITY;

describe('pace of status writes', () => {
  it('allows the first write at once, and then one per key every 300 ms', () => {
    const pace = new StatusPace();
    assert.equal(pace.waitMs('a', 1_000), 0);
    pace.recordWrite('a', 1_000);
    assert.equal(pace.waitMs('a', 1_000), 300);
    assert.equal(pace.waitMs('a', 1_299), 1);
    assert.equal(pace.waitMs('a', 1_300), 0);
    assert.equal(pace.waitMs('b', 1_000), 0);
  });

  it('allows five writes for a hundred changes in a second, including the last', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(999), { minLength: 100, maxLength: 100 }), (instants) => {
        const pace = new StatusPace();
        const writes: number[] = [];
        let dueMs = never;
        const due = [...instants].sort((a, b) => a - b);
        for (let nowMs = 0; nowMs < 2_000; nowMs++) {
          if (due[0] !== nowMs && dueMs !== nowMs) continue;
          while (due[0] === nowMs) due.shift();
          const waitMs = pace.waitMs('a', nowMs);
          if (waitMs > 0) {
            dueMs = nowMs + waitMs;
            continue;
          }
          pace.recordWrite('a', nowMs);
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
