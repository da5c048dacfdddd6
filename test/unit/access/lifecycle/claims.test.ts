import assert from 'node:assert/strict';
import { LifecycleStage, peer } from './lifecycle-stage.ts';

const minute = 60_000;

describe('access that its requester claims', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.letApprove('carol');
    stage.configure({ approvals: { ...peer, claimWithin: '30m' } });
    await stage.start();
    await stage.clock.advance(100);
    stage.ask();
    await stage.clock.advance(100);
  });
  afterEach(() => stage.stop());
  const state = (): string | undefined => stage.status.approval?.state;

  it('begins with the claim', async () => {
    await stage.voted('carol');
    assert.equal(state(), 'Claimable');
    await stage.pass(20 * minute);
    await stage.claimed();
    assert.ok(stage.isOpen);
    await stage.pass(9.9 * minute);
    assert.ok(stage.isOpen);
    await stage.pass(minute);
    assert.equal(stage.isOpen, false);
  });

  it('begins with the new approval if it was claimed when an edit of the template voided the first', async () => {
    await stage.voted('carol');
    assert.equal(state(), 'Claimable');
    stage.configure({ maxDuration: '3h' });
    await stage.claimed();
    assert.equal(state(), 'Pending');
    await stage.voted('carol');
    assert.ok(stage.isOpen);
  });

  it('begins with a claim that was made in time, although no replica led until after the time for it', async () => {
    await stage.voted('carol');
    await stage.stop();
    await stage.pass(29 * minute);
    stage.claim();
    await stage.pass(5 * minute);
    await stage.start();
    await stage.pass();
    assert.ok(stage.isOpen);
  });

  describe('and that is to begin later', () => {
    const from = '2026-11-21T09:40:00Z';
    const until = '2026-11-21T10:10:00Z';
    beforeEach(async () => {
      stage.configure({ start: { maxAhead: '24h' } });
      await stage.asked({ startAt: from });
      await stage.voted('carol');
    });

    it('says when it can be claimed, and until when it must be', async () => {
      assert.equal(state(), 'Scheduled');
      assert.equal(
        stage.approved,
        `Unknown Scheduled: the requester can claim the access (spec.claimed: true, or drawbridge claim) from ${from} until ${until}; it does not start before that claim`,
      );
      await stage.pass(41 * minute);
      assert.equal(state(), 'Claimable');
      assert.equal(
        stage.approved,
        `Unknown Claimable: waiting until ${until} for the requester to claim the access (spec.claimed: true, or drawbridge claim); it does not start before that`,
      );
      assert.equal(stage.isOpen, false);
      await stage.pass(30 * minute);
      assert.match(stage.approved, new RegExp(`did not claim the access by ${until}`));
    });

    it('says when it begins if it was claimed already', async () => {
      await stage.claimed();
      assert.equal(stage.approved, `Unknown Scheduled: access starts at ${from}`);
      await stage.pass(41 * minute);
      assert.ok(stage.isOpen);
    });
  });

  it('says that it was approved, but not claimed in time, in its condition, its Event, and its end', async () => {
    stage.vote('carol');
    await stage.pass(31 * minute);
    const text =
      'the request was approved, but the requester did not claim the access by 2026-11-21T09:30:00Z; create a new request';
    assert.equal(stage.approved, `False NotClaimed: ${text}`);
    assert.equal(stage.condition('Ready')?.message, `NotClaimed: ${text}`);
    assert.equal(stage.status.ended?.reason, 'NotClaimed');
    const { reason, note } = stage.events.at(-1) ?? {};
    assert.deepEqual([reason, note], ['NotClaimed', text]);
  });
});
