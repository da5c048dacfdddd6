import assert from 'node:assert/strict';
import { accessVotes, type VoteSpec } from '../../../../src/api/access/access-vote.ts';
import type { Grant } from '../../../../src/api/access/grant.ts';
import { requestLabel } from '../../../../src/api/access/names.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { LifecycleStage, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;
const approvals = (count: number): object => ({ all: [{ name: 'peer', count }], pendingFor: '1h' });

describe('access that others approve, under attack', () => {
  let stage: LifecycleStage;
  /** Whether the user holds the verb approve on the template. */
  let mayApprove: (user: string) => boolean;
  const begin = async (count = 1): Promise<void> => {
    stage.configure({ approvals: approvals(count) });
    await stage.start();
    await stage.pass();
  };
  /** Asks, and waits for so many approvals. */
  const waiting = async (count = 1): Promise<void> => {
    await begin(count);
    await stage.asked();
  };
  beforeEach(() => {
    stage = new LifecycleStage();
    mayApprove = () => true;
    stage.cluster.allows = ({ user, verb }) => verb === 'approve' && mayApprove(user);
  });
  afterEach(() => stage.stop());

  const grant = (): Grant | undefined => stage.status.grant;
  const ignored = (): (string | undefined)[] =>
    (stage.status.approval?.votes ?? []).map((vote) => vote.ignored?.split(':')[0]);
  const stored = (name: string): KubeObject => {
    const vote = stage.cluster.find(accessVotes, { namespace: requestName.namespace, name });
    assert.ok(vote);
    return vote;
  };

  it('counts no vote of the requester under a second name of the same uid', async () => {
    await begin();
    await stage.asked({}, { uid: 'u-1' });
    stage.vote({ username: 'alice@example.com', uid: 'u-1' });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.deepEqual(ignored(), ['SelfApproval']);
  });

  it('counts two names of one uid once', async () => {
    await waiting(2);
    stage.vote({ username: 'carol', uid: 'u-2' });
    stage.vote({ username: 'carol@example.com', uid: 'u-2' });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.deepEqual(stage.status.approval?.all, [{ name: 'peer', have: 1, need: 2 }]);
  });

  it('counts each person of fifty parallel votes once, and a denial among them wins', async () => {
    await waiting(10);
    for (let voter = 0; voter < 50; voter++) stage.vote(`voter-${voter % 5}`);
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.deepEqual(stage.status.approval?.all, [{ name: 'peer', have: 5, need: 10 }]);
    for (let voter = 5; voter < 50; voter++) stage.vote(`voter-${voter}`);
    stage.vote('voter-7', { decision: 'Deny' });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.equal(stage.status.approval?.state, 'Denied');
  });

  it('rests on as many of fifty parallel approvals as it needs', async () => {
    await waiting(10);
    for (let voter = 0; voter < 50; voter++) stage.vote(`voter-${voter}`);
    await stage.pass(1000);
    assert.ok(stage.isOpen);
    assert.equal(new Set(grant()?.votes).size, 10);
  });

  it('finds a denial among a thousand forged votes', async () => {
    await waiting();
    await stage.stop();
    const name = stage.vote('carol');
    const approval = stored(name);
    const { uid: _, ...metadata } = approval.metadata;
    for (let copy = 0; copy < 1100; copy++)
      stage.cluster.put(accessVotes, { ...approval, metadata: { ...metadata, name: `copy-${copy}` } });
    stage.vote('dave', { decision: 'Deny' });
    await stage.start();
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.equal(stage.status.approval?.state, 'Denied');
  });

  it('counts no vote for a template that is edited while the votes are read', async () => {
    await waiting();
    stage.cluster.fault = ({ verb, plural }) => {
      if (verb !== 'list' || plural !== 'accessvotes') return;
      stage.cluster.fault = () => {};
      stage.configure({ approvals: approvals(2) });
    };
    stage.vote('carol');
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.deepEqual(ignored(), ['TemplateChanged']);
  });

  it('counts no vote for an edit that the store does not have yet', async () => {
    await waiting();
    stage.cluster.lagging = podAccessTemplates;
    stage.configure({ approvals: approvals(2) });
    stage.vote('carol');
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.deepEqual(ignored(), ['TemplateChanged']);
    stage.cluster.deliverEvents();
    stage.vote('dave');
    await stage.pass(1000);
    assert.equal(grant()?.votes?.length, 2);
  });

  it('is denied by a vote that the store does not have yet', async () => {
    await waiting();
    stage.vote('carol');
    stage.cluster.lagging = accessVotes;
    stage.vote('dave', { decision: 'Deny' });
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.equal(stage.status.approval?.state, 'Denied');
  });

  it('opens by a vote before the deadline that the store does not have yet, and does not time out', async () => {
    await waiting();
    stage.cluster.lagging = accessVotes;
    stage.vote('carol');
    await stage.pass(59 * minute);
    assert.equal(grant(), undefined);
    await stage.pass(2 * minute);
    assert.ok(stage.isOpen);
  });

  it('counts no vote for an earlier template of the same name', async () => {
    await waiting();
    await stage.stop();
    stage.vote('carol');
    const template = stage.cluster.find(podAccessTemplates, templateName);
    assert.ok(template);
    stage.cluster.put(podAccessTemplates, { ...template, metadata: { ...template.metadata, uid: 'another' } });
    await stage.start();
    await stage.pass(1000);
    assert.equal(grant(), undefined);
  });

  it('does not trust status.approval of another client, and replaces it once', async () => {
    await waiting();
    const before = stage.status.approval;
    const patches = (): number => stage.cluster.calls.filter(({ verb }) => verb === 'patch').length;
    const earlier = patches();
    // A write that does not replace all of it would be repeated without end. The test stops that after some.
    stage.cluster.fault = async ({ verb }) => {
      if (verb === 'patch' && patches() > earlier + 5) await new Promise(() => {});
    };
    stage.forge({ approval: { state: 'Approved', all: [{ name: 'peer', have: 1, need: 1 }], votes: [] } });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.deepEqual(stage.status.approval, before);
    assert.equal(patches(), earlier + 1);
  });

  it('counts no vote that came after the deadline, while no replica led', async () => {
    await waiting();
    await stage.stop();
    await stage.pass(61 * minute);
    stage.vote('carol');
    await stage.start();
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.equal(stage.status.approval?.state, 'TimedOut');
  });

  it('counts no vote for an earlier request of the same name', async () => {
    await waiting();
    await stage.stop();
    const vote = stored(stage.vote('carol'));
    stage.cluster.drop(podAccessRequests, requestName);
    stage.ask({ duration: '1h' });
    const uid = stage.request?.metadata.uid ?? '';
    const { spec } = vote as KubeObject & { spec: VoteSpec };
    stage.cluster.put(accessVotes, {
      ...vote,
      metadata: { ...vote.metadata, labels: { [requestLabel]: uid } },
      spec: { ...spec, request: { ...spec.request, uid } },
    } as KubeObject);
    await stage.start();
    await stage.pass(1000);
    assert.equal(grant(), undefined);
    assert.deepEqual(ignored(), ['MissingIdentity']);
  });

  it('stays closed after a denial, although the voter loses the verb and the leader changes', async () => {
    stage.configure({ historyTTL: '1h' });
    await waiting();
    await stage.voted('carol');
    assert.ok(stage.isOpen);
    stage.vote('dave', { decision: 'Deny' });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    assert.ok(stage.request);
    mayApprove = (user) => user !== 'dave';
    await stage.restart();
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
  });

  it('stays closed after a denial of an emergency that is kept for its review', async () => {
    const reason = 'the database does not answer';
    stage.configure({ emergency: { groups: ['oncall'], maxDuration: '5m', reviewWithin: '1h' } });
    await begin();
    await stage.asked({ emergency: true, reason }, { groups: ['oncall'] });
    assert.ok(stage.isOpen);
    stage.vote('dave', { decision: 'Deny' });
    await stage.pass(1000);
    assert.equal(stage.isOpen, false);
    mayApprove = () => false;
    await stage.restart();
    await stage.pass(1000);
    assert.equal(stage.status.approval?.state, 'ReviewOwed');
    assert.equal(stage.isOpen, false);
  });
});
