import assert from 'node:assert/strict';
import { afterCall, type Breaker, closedBreaker, mayCall, probed } from '../../../../src/inventory/manager/breakers.ts';

const calls = (verdicts: string, from: Breaker = closedBreaker, at = 0): Breaker =>
  [...verdicts].reduce((breaker, one) => afterCall(breaker, one === '+' ? 'answered' : 'failed', at, undefined), from);

describe('the breaker of an endpoint', () => {
  for (const [verdicts, state] of [
    ['----', 'closed'],
    ['-----', 'open'],
    ['----+----', 'closed'],
    ['+-+-+-+-+-+-+-+-+-+', 'closed'],
    ['+-+-+-+-+-+-+-+-+-+-', 'open'],
    ['++++++++++++----', 'closed'],
    ['+--+--+--+--+--+--+', 'closed'],
    ['+--+--+--+--+--+--+-', 'open'],
  ] as const) {
    it(`is ${state} after ${verdicts}`, () => assert.equal(calls(verdicts).state, state));
  }

  it('admits one probe after 1 s, then 2, 4 … 30 s, independent of their results', () => {
    let breaker = calls('-----');
    let at = 0;
    const gaps: number[] = [];
    for (let i = 0; i < 8; i += 1) {
      const from = at;
      while (!mayCall(breaker, at)) at += 500;
      gaps.push((at - from) / 1000);
      breaker = probed(breaker, at);
      assert.equal(mayCall(breaker, at), false);
      if (i % 2) breaker = afterCall(breaker, 'failed', at, undefined);
    }
    assert.deepEqual(gaps, [1, 2, 4, 8, 16, 30, 30, 30]);
  });

  it('closes with the first answer and starts over', () => {
    const breaker = calls('+', calls('-----'), 1000);
    assert.deepEqual(breaker, closedBreaker);
    assert.equal(calls('----', breaker).state, 'closed');
  });

  it('does not probe before Retry-After, up to 30 s', () => {
    const waiting = afterCall(calls('----'), 'failed', 0, 9000);
    assert.deepEqual([mayCall(waiting, 8999), mayCall(waiting, 9000)], [false, true]);
    assert.equal(mayCall(afterCall(calls('----'), 'failed', 0, 1e9), 30_000), true);
  });
});
