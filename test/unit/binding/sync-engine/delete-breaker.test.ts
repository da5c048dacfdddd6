import assert from 'node:assert/strict';
import { DeleteBreaker } from '../../../../src/binding/sync-engine/delete-breaker.ts';

const never = Number.POSITIVE_INFINITY;

describe('the delete breaker', () => {
  const ask = (breaker: DeleteBreaker, count: number, nowMs: number, from = 0): number[] =>
    Array.from({ length: count }, (_, i) => breaker.request(`k${from + i}`, nowMs));

  it('allows a few deletes after a wait for more', () => {
    const breaker = new DeleteBreaker();
    assert.deepEqual(new Set(ask(breaker, 19, 0)), new Set([1_000]));
    assert.deepEqual(new Set(ask(breaker, 19, 1_000)), new Set([0]));
    assert.equal(breaker.held, 0);
  });

  it('holds back twenty deletes at once', () => {
    const breaker = new DeleteBreaker();
    assert.equal(ask(breaker, 20, 0).at(-1), never);
    assert.deepEqual(new Set(ask(breaker, 20, 5_000)), new Set([never]));
    assert.equal(breaker.held, 20);
  });

  it('holds back the twentieth delete within a minute, not a later one', () => {
    const fed = (gapMs: number): number => {
      const breaker = new DeleteBreaker();
      for (let i = 0; i < 20; i++) {
        breaker.request(`k${i}`, i * gapMs);
        if (breaker.request(`k${i}`, i * gapMs + 1_000) === never) return i;
        breaker.recordDeleted(`k${i}`, i * gapMs + 1_000);
      }
      return never;
    };
    assert.equal(fed(2_000), 19);
    assert.equal(fed(4_000), never);
  });

  it('closes when all objects are back, not when some are', () => {
    const breaker = new DeleteBreaker();
    ask(breaker, 25, 0);
    for (let i = 0; i < 24; i++) breaker.withdraw(`k${i}`);
    assert.equal(breaker.request('k24', 5_000), never);
    breaker.withdraw('k24');
    assert.equal(breaker.request('k99', 6_000), 1_000);
  });

  it('releases the deletes that an administrator allows, and counts later deletes from zero', () => {
    const breaker = new DeleteBreaker();
    ask(breaker, 30, 0);
    assert.equal(breaker.allow().length, 30);
    assert.deepEqual(new Set(ask(breaker, 30, 10)), new Set([0]));
    for (let i = 0; i < 30; i++) breaker.recordDeleted(`k${i}`, 20);
    assert.deepEqual(new Set(ask(breaker, 19, 30, 100)), new Set([1_000]));
    assert.equal(ask(breaker, 1, 30, 119)[0], never);
    assert.deepEqual(new DeleteBreaker().allow(), []);
  });
});
