import assert from 'node:assert/strict';
import { maxConditionMessage, mergeConditions, sameConditions } from '../../../src/api/conditions.ts';
import type { Condition } from '../../../src/api/object.ts';
import { pluck } from '../../support/pluck.ts';

const nowMs = Date.UTC(2026, 10, 21, 9, 10, 0, 900);
const now = '2026-11-21T09:10:00Z';
const earlier = '2026-11-21T08:00:00Z';

const found = (type: string, status: Condition['status'], message = 'fine') => ({
  type,
  status,
  reason: 'Because',
  message,
});
const stored = (type: string, status: Condition['status'], message = 'fine'): Condition => ({
  ...found(type, status, message),
  lastTransitionTime: earlier,
});

describe('merging conditions', () => {
  it('adds a new type at the end, in whole seconds', () => {
    assert.deepEqual(mergeConditions([stored('A', 'True')], [found('B', 'False')], nowMs), [
      stored('A', 'True'),
      { ...found('B', 'False'), lastTransitionTime: now },
    ]);
  });

  it('returns the same list if nothing changes', () => {
    const before = [stored('Theirs', 'False'), stored('A', 'True')];
    assert.equal(mergeConditions(before, [found('A', 'True')], nowMs), before);
    assert.equal(mergeConditions(before, [], nowMs), before);
  });

  it('keeps the order, foreign conditions, and unchanged conditions as the same objects', () => {
    const before = [stored('C', 'True'), stored('A', 'True'), stored('B', 'True')];
    const merged = mergeConditions(before, [found('A', 'False'), found('B', 'True')], nowMs);
    assert.deepEqual(pluck(merged, 'type'), ['C', 'A', 'B']);
    assert.equal(merged[0], before[0]);
    assert.equal(merged[2], before[2]);
    assert.equal(sameConditions(before, merged), false);
  });

  it('keeps the time while the status does not change', () => {
    const [merged] = mergeConditions([stored('A', 'True')], [found('A', 'True', 'still fine')], nowMs);
    assert.deepEqual(merged, stored('A', 'True', 'still fine'));
    const [turned] = mergeConditions([stored('A', 'True')], [found('A', 'False')], nowMs);
    assert.equal(turned?.lastTransitionTime, now);
  });

  it('sets the time at any change with that option', () => {
    const options = { transitionOn: 'anyChange' } as const;
    const [merged] = mergeConditions([stored('A', 'True')], [found('A', 'True', 'still fine')], nowMs, options);
    assert.equal(merged?.lastTransitionTime, now);
    const before = [stored('A', 'True')];
    assert.equal(mergeConditions(before, [found('A', 'True')], nowMs, options), before);
  });

  it('writes the generation if there is one, and again when it changes', () => {
    const first = mergeConditions([stored('A', 'True')], [found('A', 'True')], nowMs, { generation: 1 });
    assert.deepEqual(first, [{ ...stored('A', 'True'), observedGeneration: 1 }]);
    assert.equal(mergeConditions(first, [found('A', 'True')], nowMs, { generation: 1 }), first);
    const second = mergeConditions(first, [found('A', 'True')], nowMs, { generation: 2 });
    assert.deepEqual(second, [{ ...stored('A', 'True'), observedGeneration: 2 }]);
  });

  it('uses the last update of a type, compared with the stored condition', () => {
    const before = [stored('A', 'True')];
    assert.equal(mergeConditions(before, [found('A', 'False'), found('A', 'True')], nowMs), before);
  });

  it('cuts a message to the API limit, never within a character, and does not write it again', () => {
    const finding = found('A', 'False', `${'x'.repeat(maxConditionMessage - 1)}😀`);
    const merged = mergeConditions<Condition>([], [finding], nowMs);
    assert.equal([...(merged[0]?.message ?? '')].length, maxConditionMessage);
    // The condition after a round trip to the API server as JSON.
    const again = JSON.parse(Buffer.from(JSON.stringify(merged)).toString());
    assert.equal(mergeConditions(again, [finding], nowMs + 60_000), again);
  });
});

describe('equality of conditions', () => {
  const a = { ...stored('A', 'False'), severity: 'Error', observedGeneration: 1 };
  const b = stored('B', 'True');

  it('ignores times and order', () => {
    assert.ok(sameConditions([a, b], [b, { ...a, lastTransitionTime: now }]));
  });

  for (const [title, other] of [
    ['a status', [{ ...a, status: 'Unknown' as const }, b]],
    ['a severity', [{ ...a, severity: 'Info' }, b]],
    ['a reason', [{ ...a, reason: 'Other' }, b]],
    ['a message', [{ ...a, message: 'other' }, b]],
    ['a generation', [{ ...a, observedGeneration: 2 }, b]],
    ['a type', [{ ...a, type: 'C' }, b]],
    ['one that is missing', [a]],
    ['one more', [a, b, stored('C', 'True')]],
  ] as const) {
    it(`sees ${title}`, () => {
      assert.ok(!sameConditions([a, b], other));
      assert.ok(!sameConditions(other, [a, b]));
    });
  }
});
