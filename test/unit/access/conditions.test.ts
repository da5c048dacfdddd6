import assert from 'node:assert/strict';
import { allTrue, failure, mergeConditions, sameConditions, success } from '../../../src/access/conditions.ts';
import { condition } from '../../support/request-views.ts';

const nowMs = Date.UTC(2026, 10, 21, 9, 10, 0, 900);
const now = '2026-11-21T09:10:00Z';

describe('conditions', () => {
  it('start with the time and generation of the finding', () => {
    assert.deepEqual(mergeConditions({ generation: 3, conditions: [] }, [success('A', 'fine')], nowMs), [
      { type: 'A', status: 'True', reason: 'Success', message: 'fine', lastTransitionTime: now, observedGeneration: 3 },
    ]);
  });

  const before = condition('A', 'True', { message: 'fine' });
  const changes = [
    { what: 'another message', finding: success('A', 'still fine'), generation: 1, time: before.lastTransitionTime },
    { what: 'another generation', finding: success('A', 'fine'), generation: 2, time: before.lastTransitionTime },
    { what: 'another status', finding: failure('A', 'Broken', 'not fine'), generation: 1, time: now },
  ];
  for (const { what, finding, generation, time } of changes) {
    it(`change with ${what}`, () => {
      const merged = mergeConditions({ generation, conditions: [before] }, [finding], nowMs);
      assert.deepEqual(merged, [{ ...finding, lastTransitionTime: time, observedGeneration: generation }]);
      assert.equal(sameConditions([before], merged), false);
    });
  }

  it('are the same objects when nothing new was found, those of others included', () => {
    const conditions = [condition('Theirs', 'False'), before];
    const merged = mergeConditions({ generation: 1, conditions }, [success('A', 'fine')], nowMs);
    assert.deepEqual(merged, conditions);
    assert.equal(sameConditions(conditions, merged), true);
  });

  it('differ when one was added', () => {
    const merged = mergeConditions({ generation: 1, conditions: [before] }, [success('B', 'too')], nowMs);
    assert.equal(sameConditions([before], merged), false);
  });

  it('are all true only when each of the types is there and True', () => {
    const conditions = [condition('A', 'True'), condition('B', 'False'), condition('C', 'True')];
    assert.equal(allTrue(conditions, ['A', 'C']), true);
    assert.equal(allTrue(conditions, ['A', 'B']), false);
    assert.equal(allTrue(conditions, ['A', 'D']), false);
  });

  it('are cut to what the API takes, and not written again for what was cut off', () => {
    const finding = failure('A', 'Broken', 'no'.repeat(30_000));
    const first = mergeConditions({ generation: 1, conditions: [] }, [finding], nowMs);
    assert.equal(first[0]?.message.length, 32_768);
    const again = mergeConditions({ generation: 1, conditions: first }, [finding], nowMs + 1000);
    assert.equal(sameConditions(first, again), true);
  });
});
