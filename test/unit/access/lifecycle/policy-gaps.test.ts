import assert from 'node:assert/strict';
import { accessVotes } from '../../../../src/api/access/access-vote.ts';
import { podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { TemplateStatus } from '../../../../src/api/access/status.ts';
import type { Condition } from '../../../../src/api/object.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { LifecycleStage, peer, templateName } from './lifecycle-stage.ts';

const oncall = { groups: ['qa', 'oncall'] };
const emergency = { groups: ['oncall'], maxDuration: '5m', reviewWithin: '1h' };
const alone = { times: 3, total: '2h', approvals: 'None' };

describe('while nothing proves that the admission policies are in force', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.letApprove('alice', 'carol', 'dave');
    await stage.start();
    await stage.clock.advance(1000);
  });
  afterEach(() => stage.stop());

  const ready = (): Condition | undefined => stage.condition('Ready');
  /** The gap ends now, so it counts for all that exists. */
  const endGap = async (): Promise<void> => {
    stage.policiesSinceMs = stage.clock.now();
    await stage.pass(3000);
  };
  const denial = () => stage.lines.find(({ verdict }) => verdict === 'denied');

  it('a request waits, says so, and opens once they are, if it is younger than the gap', async () => {
    const sinceMs = stage.clock.now() - 1000;
    stage.policiesSinceMs = 'never';
    await stage.asked();
    await stage.pass(60_000);
    assert.equal(stage.isOpen, false);
    assert.equal(ready()?.reason, 'PoliciesMissing');
    assert.match(ready()?.message ?? '', /^waiting until the leader has proven/);
    const writes = stage.cluster.calls.filter(({ verb }) => verb === 'patch').length;
    await stage.pass(60_000);
    assert.equal(
      stage.cluster.calls.filter(({ verb }) => verb === 'patch').length,
      writes,
      'no write without a change',
    );
    stage.policiesSinceMs = sinceMs;
    await stage.pass(3000);
    assert.ok(stage.isOpen);
    assert.deepEqual(stage.auditVerdicts, ['grant granted']);
  });

  it('a request of the gap is denied at its end, and its denial names no requester', async () => {
    stage.policiesSinceMs = 'never';
    await stage.asked();
    await endGap();
    assert.equal(stage.isOpen, false);
    assert.equal(stage.condition('AccessResourcesCreated')?.reason, 'PoliciesMissing');
    assert.deepEqual([denial()?.code, denial()?.who.user], ['PoliciesMissing', '']);
  });

  it('a request that waits for a vote since before the gap is denied when it has its vote', async () => {
    await stage.configured({ approvals: peer });
    await stage.asked();
    await stage.pass(2000);
    await endGap();
    await stage.voted('carol');
    await stage.pass(3000);
    assert.equal(stage.isOpen, false);
    assert.equal(denial()?.code, 'PoliciesMissing');
  });

  it('a request that waits for a vote says so again after the gap', async () => {
    const sinceMs = stage.clock.now() - 1000;
    await stage.configured({ approvals: peer });
    await stage.asked();
    stage.policiesSinceMs = 'never';
    await stage.restart();
    await stage.pass(5000);
    assert.equal(ready()?.reason, 'PoliciesMissing');
    stage.policiesSinceMs = sinceMs;
    await stage.pass(5000);
    assert.equal(ready()?.reason, 'Pending');
    assert.equal(stage.condition('AccessResourcesReady'), undefined);
  });

  it('an emergency of the gap owes no review', async () => {
    await stage.configured({ approvals: peer, emergency });
    stage.policiesSinceMs = 'never';
    await stage.asked({ emergency: true, reason: 'the database does not answer' }, oncall);
    await stage.pass(3000);
    await endGap();
    assert.equal(stage.isOpen, false);
    assert.deepEqual(stage.reviews().list(), []);
    assert.equal(denial()?.code, 'PoliciesMissing');
  });

  it('open access goes on and ends on time, and is not extended, nor after the gap', async () => {
    await stage.configured({ extension: alone });
    await stage.granted();
    const { expiresAt } = stage.status.grant ?? {};
    stage.policiesSinceMs = 'never';
    await stage.extended('20m');
    await stage.pass(10_000);
    assert.ok(stage.isOpen);
    assert.notEqual(stage.status.extensions?.[0]?.state, 'Granted');
    await endGap();
    assert.equal(stage.status.extensions?.[0]?.state, 'Denied');
    assert.match(stage.status.extensions?.[0]?.message ?? '', /^PoliciesMissing: /);
    assert.equal(stage.status.expiresAt, expiresAt);
    await stage.pass(10 * 60_000);
    assert.equal(stage.isOpen, false);
  });

  it('a grant that an earlier leader decided, and did not open, is not opened', async () => {
    stage.cluster.fail('create', 'roles');
    await stage.asked();
    assert.ok(stage.status.grant);
    await stage.stop();
    stage.cluster.fault = () => {};
    stage.policiesSinceMs = 'never';
    await stage.start();
    await stage.pass(10_000);
    assert.equal(stage.isOpen, false);
    assert.equal(ready()?.reason, 'PoliciesMissing');
    await endGap();
    assert.equal(stage.isOpen, false);
    assert.equal(denial()?.code, 'PoliciesMissing');
    assert.deepEqual(stage.children, []);
  });

  it('a grant is not opened with an object that was there already, if the gap began meanwhile', async () => {
    let tries = 0;
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'create') return;
      if (plural === 'pods' && ++tries === 2) stage.policiesSinceMs = 'never';
      if (plural === 'roles' && tries === 1) throw new ApiError(500, 'InternalError', 'not now');
    };
    await stage.asked();
    await stage.pass(60_000);
    assert.equal(stage.policiesSinceMs, 'never');
    assert.deepEqual([stage.isOpen, stage.children.length], [false, 1]);
  });

  it('the vote about a review settles nothing and goes, and the same person settles it later', async () => {
    await stage.configured({ approvals: peer, emergency });
    await stage.asked({ emergency: true, reason: 'the database does not answer' }, oncall);
    assert.ok(stage.isOpen);
    stage.policiesSinceMs = 'never';
    stage.vote('carol', { about: 'Review', decision: 'Approve' });
    await stage.pass(5000);
    assert.equal(stage.status.approval?.state, 'ReviewOwed');
    await endGap();
    await stage.pass(30_000);
    assert.equal(stage.status.approval?.state, 'ReviewOwed');
    assert.deepEqual(stage.cluster.names(accessVotes), []);
    await stage.pass(1000);
    await stage.voted('carol', { about: 'Review', decision: 'Approve' });
    await stage.pass(3000);
    assert.equal(stage.status.approval?.state, 'Reviewed');
  });

  it('a new version of a template waits for its verdict, and stays refused until it changes again', async () => {
    const author = (): string | undefined => {
      const { status } = stage.cluster.find(podAccessTemplates, templateName) ?? {};
      const { conditions = [] } = (status ?? {}) as TemplateStatus;
      return conditions.find(({ type }) => type === 'AuthorHoldsRights')?.reason;
    };
    stage.policiesSinceMs = 'never';
    await stage.configured({ maxDuration: '3h' });
    await stage.pass(60_000);
    assert.equal(author(), 'Success', 'that of the version before');
    await stage.asked();
    assert.equal(stage.isOpen, false);
    await endGap();
    assert.equal(author(), 'PoliciesMissing');
    stage.policiesSinceMs = 0;
    await stage.restart();
    await stage.pass(120_000);
    assert.equal(author(), 'PoliciesMissing');
    await stage.configured({ maxDuration: '2h' });
    await stage.pass(3000);
    assert.equal(author(), 'Success');
  });
});
