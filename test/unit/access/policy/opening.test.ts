import assert from 'node:assert/strict';
import { type Approval, type OpeningInput, openingOf } from '../../../../src/access/policy/opening.ts';
import { approvals } from '../../../support/access-objects.ts';
import { pluck } from '../../../support/pluck.ts';

/** Monday, 12:00 in Berlin. */
const createdAtMs = Date.parse('2026-11-23T11:00:00Z');
const minute = 60_000;
const startAt = (minutes: number): string => new Date(createdAtMs + minutes * minute).toISOString();
const vote = (minutes: number, maxMs?: number, name = `v${minutes}`): Approval => ({
  uid: name,
  voter: { username: name, uid: '', groups: [] },
  createdAtMs: createdAtMs + minutes * minute,
  maxMs,
});
const office = { windows: [{ days: ['Mon' as const], from: '08:00', to: '13:00', timeZone: 'Europe/Berlin' }] };

/** The state, and the minute after creation that it names. */
function stateAt(minutes: number, input: Partial<OpeningInput>): string {
  const opening = openingOf(
    { createdAtMs, spec: {}, config: {}, approvals: [], ...input },
    createdAtMs + minutes * minute,
  );
  const times = { untilMs: undefined, atMs: undefined, ...opening };
  const at = times.untilMs ?? times.atMs;
  return at === undefined ? opening.is : `${opening.is} ${(at - createdAtMs) / minute}`;
}

describe('the opening of access', () => {
  const claim = { approvals: { ...approvals, claimWithin: '2h' } };
  const two = { approvals: { ...approvals, all: [{ name: 'peer', count: 2 }] } };
  for (const [what, minutes, input, state] of [
    ['is due at once without approvals', 0, {}, 'due'],
    ['is due with a vote', 5, { config: { approvals }, approvals: [vote(5)] }, 'due'],
    ['waits for approvals until pendingFor', 59.9, { config: { approvals } }, 'pending 60'],
    ['times out with pendingFor', 60, { config: { approvals } }, 'timedOut 60'],
    ['waits for the second vote', 30, { config: two, approvals: [vote(5)] }, 'pending 60'],
    ['counts a vote that came in time, however late', 600, { config: { approvals }, approvals: [vote(59.9)] }, 'due'],
    ['counts no vote that came too late', 600, { config: { approvals }, approvals: [vote(60)] }, 'timedOut 60'],
    ['waits for startAt', 0, { spec: { startAt: startAt(90) } }, 'scheduled 90'],
    ['is due at startAt', 90, { spec: { startAt: startAt(90) } }, 'due'],
    ['waits for approvals before startAt', 10, { config: { approvals }, spec: { startAt: startAt(90) } }, 'pending 60'],
    [
      'waits for startAt after approval',
      10,
      { config: { approvals }, approvals: [vote(5)], spec: { startAt: startAt(90) } },
      'scheduled 90',
    ],
    ['waits for the claim, from the approval on', 10, { config: claim, approvals: [vote(5)] }, 'claimable 125'],
    [
      'waits for the claim, from startAt on',
      95,
      { config: claim, approvals: [vote(5)], spec: { startAt: startAt(90) } },
      'claimable 210',
    ],
    ['is due when claimed', 10, { config: claim, approvals: [vote(5)], spec: { claimed: true } }, 'due'],
    ['times out without a claim', 125, { config: claim, approvals: [vote(5)] }, 'timedOut 125'],
    ['is due with a claim, however late', 600, { config: claim, approvals: [vote(5)], spec: { claimed: true } }, 'due'],
    [
      'waits for the next window after a claim, even if that opens after the time for claims',
      130,
      { config: { ...claim, start: office }, approvals: [vote(5)], spec: { claimed: true } },
      'scheduled 9840',
    ],
    ['is not claimed before it is approved', 10, { config: claim, spec: { claimed: true } }, 'pending 60'],
    ['is due within a window', 59, { config: { start: office } }, 'due'],
    ['waits for the next window', 60, { config: { start: office } }, 'scheduled 9840'],
    ['never waits in an emergency', 60, { config: { approvals, start: office }, spec: { emergency: true } }, 'due'],
  ] as const satisfies readonly (readonly [string, number, Partial<OpeningInput>, string])[]) {
    it(what, () => assert.equal(stateAt(minutes, input), state));
  }

  it('lasts as long as the smallest max of the votes that it rests on', () => {
    const input = {
      createdAtMs,
      spec: {},
      config: two,
      approvals: [vote(1, 40 * minute), vote(2), vote(3, minute)],
    };
    const opening = openingOf(input, createdAtMs + 5 * minute);
    assert.ok(opening.is === 'due');
    assert.equal(opening.maxMs, 40 * minute);
    assert.deepEqual(pluck(opening.votes, 'uid'), ['v1', 'v2']);
  });
});
