import assert from 'node:assert/strict';
import { CallBackoff } from '../../../../src/binding/sync-engine/call-backoff.ts';

describe('the backoff of calls', () => {
  const newBackoff = (): CallBackoff => new CallBackoff(() => 0.5);

  it('backs off from failures, up to the cap', () => {
    const backoff = newBackoff();
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 12; i++) {
      const waitMs = backoff.recordFailure('k', 'update', 'x', nowMs, 30_000);
      assert.equal(backoff.waitMs('k', 'update', 'x', nowMs), waitMs);
      waits.push(waitMs);
      nowMs += waitMs;
    }
    assert.deepEqual(waits.slice(0, 4), [75, 150, 300, 600]);
    assert.equal(Math.max(...waits), 22_500);
    assert.ok(backoff.recordFailure('k', 'update', 'x', nowMs, 5_000) <= 5_000);
  });

  it('allows a different content, action, or key at once', () => {
    const backoff = newBackoff();
    backoff.recordFailure('k', 'update', 'x', 0, 30_000);
    assert.equal(backoff.waitMs('k', 'update', 'y', 0), 0);
    assert.equal(backoff.waitMs('k', 'addFinalizer', 'x', 0), 0);
    assert.equal(backoff.waitMs('l', 'update', 'x', 0), 0);
    assert.ok(backoff.recordFailure('k', 'update', 'y', 0, 30_000) > 75, 'the row of failures goes on');
  });

  it('backs off from a write that another client keeps undoing', () => {
    const backoff = newBackoff();
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 9; i++) {
      backoff.recordSuccess('k', 'update', 'x', nowMs);
      const waitMs = backoff.waitMs('k', 'update', 'x', nowMs);
      waits.push(waitMs);
      nowMs += waitMs;
    }
    assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it('does not repeat an ineffective write until its content changes or its backoff is cleared', () => {
    const backoff = newBackoff();
    const long = 'x'.repeat(1_000);
    backoff.recordIneffective('k', 'status', long, 0);
    assert.equal(backoff.waitMs('k', 'status', long, 1e9), Number.POSITIVE_INFINITY);
    assert.equal(backoff.waitMs('k', 'status', `${long}y`, 0), 0);
    backoff.clear();
    assert.equal(backoff.waitMs('k', 'status', long, 0), 0);
  });

  it('repeats an ineffective write with backoff', () => {
    const backoff = newBackoff();
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 13; i++) {
      backoff.recordSuccess('k', 'status', 'x', nowMs);
      waits.push(backoff.recordIneffective('k', 'status', 'x', nowMs, 1_000_000));
      nowMs += backoff.waitMs('k', 'status', 'x', nowMs);
      // Other keys continue meanwhile.
      backoff.recordSuccess('l', 'status', 'x', nowMs);
    }
    for (const [i, waitMs] of waits.entries()) assert.equal(waitMs, Math.min(1_000_000, 500 * 2 ** i));
  });

  it('forgets an attempt after five minutes, not before', () => {
    const fiveMinutesMs = 5 * 60_000;
    for (const [idleMs, waitMs] of [
      [fiveMinutesMs - 1, 600],
      [fiveMinutesMs, 75],
      [3 * fiveMinutesMs, 75],
    ] as const) {
      const backoff = newBackoff();
      for (let i = 0; i < 3; i++) backoff.recordFailure('k', 'update', 'x', fiveMinutesMs, 30_000);
      const nowMs = fiveMinutesMs + 300 + idleMs;
      backoff.recordSuccess('other', 'update', 'x', nowMs);
      assert.equal(backoff.recordFailure('k', 'update', 'x', nowMs, 30_000), waitMs, `after ${idleMs} ms`);
    }
  });

  it('retries only failures at once after an outage', () => {
    const backoff = newBackoff();
    backoff.recordFailure('k', 'create', 'x', 0, 30_000);
    backoff.recordSuccess('k', 'update', 'x', 0);
    backoff.retryNow('k');
    assert.deepEqual([backoff.waitMs('k', 'create', 'x', 0), backoff.waitMs('k', 'update', 'x', 0)], [0, 500]);
  });
});
