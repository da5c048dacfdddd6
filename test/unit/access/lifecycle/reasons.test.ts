import assert from 'node:assert/strict';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage, peer } from './lifecycle-stage.ts';

const minute = 60_000;

describe('access for a reason', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.letApprove('carol');
    await stage.start();
  });
  afterEach(() => stage.stop());

  const line = (event: AuditRecord['event']): AuditRecord | undefined =>
    stage.lines.find((candidate) => candidate.event === event);

  it('is denied by the leader if the request has none, as when the webhook was away', async () => {
    await stage.configured({ reason: { minLength: 10 } });
    await stage.asked();
    assert.equal(line('grant')?.code, 'InvalidRequest');
    assert.equal(stage.isOpen, false);
  });

  it('shows the address of the ticket, and records the reason with the grant', async () => {
    const link = 'https://tickets.example/{match}';
    await stage.configured({ reason: { minLength: 1, pattern: '^INC-[0-9]+', link } });
    await stage.asked({ reason: 'INC-42 disk full' });
    assert.ok(stage.isOpen);
    assert.equal(stage.status.reasonLink, 'https://tickets.example/INC-42');
    const { reason, duration, templateUid, templateGeneration } = line('grant') ?? {};
    assert.deepEqual([reason, duration, templateGeneration], ['INC-42 disk full', '10m', 2]);
    assert.equal(templateUid, stage.status.grant?.template.uid);
  });

  it('shows the address to approvers, too: another if the template has another link, and none if it has none', async () => {
    const reason = { minLength: 1, pattern: 'INC-[0-9]+' };
    await stage.configured({ approvals: peer, reason: { ...reason, link: 'https://t.example/{match}' } });
    await stage.asked({ reason: 'see INC-7' });
    assert.equal(stage.status.reasonLink, 'https://t.example/INC-7');
    await stage.configured({ approvals: peer, reason: { ...reason, link: 'https://new.example/{match}' } });
    assert.equal(stage.status.reasonLink, 'https://new.example/INC-7');
    const before = stage.request?.metadata.resourceVersion;
    await stage.configured({
      approvals: peer,
      reason: { ...reason, link: 'https://new.example/{match}', prompt: 'which ticket' },
    });
    assert.equal(stage.request?.metadata.resourceVersion, before, 'a write that changes nothing');
    await stage.configured({ approvals: peer, reason });
    assert.equal(stage.status.reasonLink, undefined);
    const without = stage.request?.metadata.resourceVersion;
    await stage.configured({ approvals: peer, reason: { ...reason, prompt: 'which ticket' } });
    assert.equal(stage.request?.metadata.resourceVersion, without, 'a write that changes nothing');
  });

  it('records the votes that a grant rests on, with their reasons', async () => {
    await stage.configured({ approvals: peer });
    await stage.asked();
    stage.vote('eve', { reason: 'me too' });
    await stage.voted('carol', { max: '5m', reason: 'ticket checked' });
    const [uid] = stage.status.grant?.votes ?? [];
    assert.deepEqual(line('grant')?.votes, [
      { uid, voter: 'carol', decision: 'Approve', max: '5m', reason: 'ticket checked' },
    ]);
  });

  it('records who ended it by a vote, and why', async () => {
    await stage.configured({ approvals: peer });
    await stage.asked();
    await stage.voted('carol');
    stage.vote('eve', { decision: 'Deny', reason: 'forged' });
    await stage.voted('carol', { decision: 'Deny', reason: 'wrong pod' });
    const revocation = line('revocation');
    assert.equal(revocation?.code, 'VoteDenied');
    assert.equal(revocation?.message, 'carol denied the request: wrong pod');
    assert.deepEqual(pluck(revocation?.votes ?? [], 'voter', 'reason'), [['carol', 'wrong pod']]);
  });

  it('records why it was revoked', async () => {
    await stage.asked({ reason: 'debugging' });
    await stage.changed({ revoked: true, revokedReason: 'done early' });
    assert.equal(line('revocation')?.code, 'Revoked');
    assert.equal(line('revocation')?.reason, 'done early');
    assert.equal(stage.isOpen, false);
  });

  it('begins at startAt without any approvals', async () => {
    await stage.configured({ start: { maxAhead: '24h' } });
    const startAt = formatTime(stage.clock.now() + 20 * minute);
    stage.ask({ startAt });
    await stage.pass(19 * minute);
    assert.equal(stage.isOpen, false);
    await stage.pass(2 * minute);
    assert.ok(stage.isOpen);
    assert.equal(line('grant')?.startAt, startAt);
  });

  it('is denied if startAt is further ahead than the template allows, as when the webhook was away', async () => {
    await stage.configured({ start: { maxAhead: '10m' } });
    await stage.asked({ startAt: formatTime(stage.clock.now() + 20 * minute) });
    assert.equal(line('grant')?.code, 'InvalidRequest');
  });
});
