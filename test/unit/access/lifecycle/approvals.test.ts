import assert from 'node:assert/strict';
import { accessVotes } from '../../../../src/api/access/access-vote.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import { roleBindings } from '../../../../src/api/resources.ts';
import { formatTime, parseTime } from '../../../../src/kit/clock.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage, peer, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;

describe('access that others approve', () => {
  let stage: LifecycleStage;
  /** Who holds the verb approve on the template. */
  let approvers: Set<string>;
  beforeEach(async () => {
    stage = new LifecycleStage();
    approvers = stage.letApprove('carol', 'dave', 'alice', 'system:serviceaccount:ops:bot');
    stage.configure({ approvals: peer });
    await stage.start();
    await stage.clock.advance(100);
  });
  afterEach(() => stage.stop());

  it('waits, and says for whom and until when', async () => {
    await stage.asked();
    const due = formatTime((parseTime(stage.request?.metadata.creationTimestamp ?? '') ?? 0) + 60 * minute);
    assert.equal(
      stage.approved,
      `Unknown Pending: waiting for approvals until ${due}: peer 0 of 1 from holders of the verb approve`,
    );
    assert.deepEqual(stage.status.approval, { state: 'Pending', due, all: [{ name: 'peer', have: 0, need: 1 }] });
    assert.equal(stage.status.ready, false);
    assert.equal(stage.isOpen, false);
    const writes = stage.cluster.calls.filter(({ verb }) => verb === 'patch').length;
    await stage.pass(30 * minute);
    assert.equal(stage.cluster.calls.filter(({ verb }) => verb === 'patch').length, writes, 'nothing changed');
  });

  it('names each entry while it waits', async () => {
    stage.configure({ approvals: { ...peer, all: [...peer.all, { name: 'second', count: 1 }] } });
    await stage.asked();
    await stage.voted('carol');
    assert.match(stage.approved, /peer 1 of 1, second 0 of 1 from /);
  });

  it('opens with the vote, and its time counts from then', async () => {
    stage.ask();
    await stage.pass(30 * minute);
    await stage.voted('carol');
    assert.ok(stage.isOpen);
    assert.equal(stage.approved, 'True Success: approved by carol');
    assert.equal(stage.status.approval?.due, undefined, 'no longer the end of the wait');
    assert.equal(stage.grantedMinutes, 10);
    assert.equal(stage.status.grant?.votes?.length, 1);
    await stage.pass(9.9 * minute);
    assert.ok(stage.isOpen);
    await stage.pass(minute);
    assert.equal(stage.isOpen, false);
  });

  it('lasts as long as the smallest max of its votes', async () => {
    await stage.asked();
    await stage.voted('carol', { max: '3m' });
    assert.equal(stage.grantedMinutes, 3);
    assert.equal(stage.condition('AccessDurationsValid')?.message, '10 min, as requested; approved for 3 min');
    assert.equal(stage.condition('AccessShortened')?.message, 'asked for 10 min, granted 3 min');
  });

  it('shows in the status and in the journal for whom a program voted', async () => {
    await stage.asked();
    await stage.voted('carol', { onBehalfOf: 'frank' });
    assert.equal(stage.status.approval?.votes?.[0]?.onBehalfOf, 'frank');
    assert.equal(stage.lines[0]?.votes?.[0]?.onBehalfOf, 'frank');
  });

  it('is denied for good by a vote, which the status names', async () => {
    await stage.asked();
    await stage.voted('carol', { decision: 'Deny', reason: 'not during the freeze' });
    assert.equal(stage.approved, 'False Denied: carol denied the request: not during the freeze');
    await stage.voted('dave');
    assert.equal(stage.isOpen, false);
  });

  it('ends at once when an approver denies it', async () => {
    await stage.asked();
    await stage.voted('carol');
    assert.ok(stage.isOpen);
    await stage.voted('dave', { decision: 'Deny' });
    assert.equal(stage.isOpen, false);
    assert.equal(stage.lines.at(-1)?.code, 'VoteDenied');
  });

  it('is denied when no approval comes in time, and the denial can be read for an hour', async () => {
    stage.ask();
    await stage.pass(61 * minute);
    assert.match(stage.approved, /^False NotApproved: the approvals .* did not come by /);
    assert.match(
      stage.condition('Ready')?.message ?? '',
      /^NotApproved: the approvals /,
      'the column WHY of kubectl get',
    );
    assert.equal(stage.status.ended?.reason, 'NotApproved');
    assert.equal(stage.events.at(-1)?.reason, 'NotApproved');
    stage.vote('carol');
    await stage.pass(50 * minute);
    assert.ok(stage.request, 'still there');
    assert.equal(stage.isOpen, false);
    await stage.pass(20 * minute);
    assert.equal(stage.request, undefined);
  });

  it('is kept for an hour after its denial, however long it could have waited', async () => {
    stage.configure({ approvals: { ...peer, pendingFor: '168h' }, start: { maxAhead: '8760h' } });
    stage.ask({ startAt: formatTime(stage.clock.now() + 8000 * 60 * minute) });
    await stage.pass(30 * minute);
    stage.vote('carol', { decision: 'Deny' });
    await stage.pass(59 * minute);
    assert.equal(stage.status.approval?.state, 'Denied');
    assert.equal(stage.status.approval?.due, undefined, 'it waits no longer');
    await stage.pass(2 * minute);
    assert.equal(stage.request, undefined);
  });

  it('is kept for an hour after it was denied because its template was deleted', async () => {
    stage.ask();
    await stage.pass(30 * minute);
    stage.cluster.drop(podAccessTemplates, templateName);
    await stage.pass(59 * minute);
    assert.equal(stage.condition('TargetTemplateExists')?.reason, 'NotFound');
    await stage.pass(2 * minute);
    assert.equal(stage.request, undefined);
  });

  it('opens after an edit that removes the approvals, and its time counts from its creation', async () => {
    stage.ask();
    await stage.pass(3 * minute);
    await stage.configured({ approvals: undefined });
    assert.ok(stage.isOpen);
    await stage.pass(6.9 * minute);
    assert.ok(stage.isOpen);
    await stage.pass(minute);
    assert.equal(stage.isOpen, false);
  });

  it('is denied after an edit that removes the approvals later than its duration', async () => {
    stage.ask();
    await stage.pass(30 * minute);
    await stage.configured({ approvals: undefined });
    assert.equal(stage.condition('AccessStillValid')?.reason, 'Timeout');
    await stage.pass(50 * minute);
    assert.ok(stage.request, 'the denial can be read');
  });

  describe('is not opened by a vote', () => {
    for (const [what, vote] of [
      ['without a voter', () => stage.vote('carol', {}, { voter: undefined })],
      ['of a person without the verb approve', () => stage.vote('eve')],
      ['of the requester', () => stage.vote('alice')],
      ['of a ServiceAccount', () => stage.vote('system:serviceaccount:ops:bot')],
      ['about something else', () => stage.vote('carol', { about: 'Review' })],
      [
        'on another request',
        () => stage.vote('carol', { request: { kind: 'PodAccessRequest', name: 'debug', uid: 'other' } }),
      ],
      [
        'for an earlier version of the template',
        () => {
          stage.vote('carol');
          stage.configure({ maxDuration: '3h' });
        },
      ],
      [
        'of a person who lost the verb before it was counted',
        () => {
          stage.vote('carol');
          approvers.delete('carol');
        },
      ],
    ] as const) {
      it(what, async () => {
        await stage.asked();
        vote();
        await stage.pass(1000);
        assert.equal(stage.isOpen, false);
        assert.equal(stage.status.approval?.state, 'Pending');
      });
    }

    it('that is a copy under another name', async () => {
      await stage.asked();
      await stage.configured({ approvals: { ...peer, all: [{ name: 'peer', count: 2 }] } });
      const name = stage.vote('carol');
      await stage.pass();
      const original = stage.cluster.find(accessVotes, { namespace: requestName.namespace, name });
      assert.ok(original);
      const { uid: _, ...metadata } = original.metadata;
      stage.cluster.put(accessVotes, { ...original, metadata: { ...metadata, name: 'copy' } });
      await stage.pass(1000);
      assert.equal(stage.isOpen, false);
      assert.match(stage.approved, /peer 1 of 2/);
    });
  });

  it('counts the second approval of a person after the template was edited', async () => {
    await stage.asked();
    const two = { ...peer, all: [{ name: 'peer', count: 2 }] };
    await stage.configured({ approvals: two });
    await stage.voted('carol');
    await stage.configured({ approvals: { ...two, pendingFor: '2h' } });
    await stage.voted('dave');
    assert.equal(stage.isOpen, false);
    const ignored = stage.status.approval?.votes?.filter((vote) => vote.ignored !== undefined) ?? [];
    assert.deepEqual(pluck(ignored, 'voter'), ['carol']);
    await stage.voted('carol');
    assert.ok(stage.isOpen);
    assert.equal(stage.status.grant?.votes?.length, 2);
  });

  it('names in the status why a vote does not count', async () => {
    await stage.asked();
    await stage.voted('eve', { reason: 'please' });
    const [shown] = stage.status.approval?.votes ?? [];
    assert.equal(shown?.voter, 'eve');
    assert.match(shown?.ignored ?? '', /^NotApprover: /);
  });

  it('shows the votes of one second with the denial last, because it is final', async () => {
    await stage.configured({ approvals: { ...peer, all: [{ name: 'peer', count: 3 }] } });
    await stage.asked();
    stage.vote('dave', { decision: 'Deny' });
    stage.vote('carol');
    await stage.voted('dave');
    const votes = stage.status.approval?.votes ?? [];
    assert.deepEqual(pluck(votes, 'decision'), ['Approve', 'Approve', 'Deny']);
  });

  it('is decided again from the votes after a restart', async () => {
    await stage.asked();
    await stage.stop();
    stage.vote('carol');
    await stage.clock.advance(10 * minute);
    await stage.start();
    await stage.pass();
    assert.ok(stage.isOpen);
    assert.equal(stage.grantedMinutes, 10, 'counted from the grant, not from the vote');
  });

  it('begins at startAt if it is approved before', async () => {
    stage.configure({ start: { maxAhead: '24h' } });
    const startAt = formatTime(stage.clock.now() + 40 * minute);
    await stage.asked({ startAt });
    await stage.voted('carol');
    assert.equal(stage.approved, `Unknown Scheduled: access starts at ${startAt}`);
    await stage.pass(39 * minute);
    assert.equal(stage.isOpen, false);
    await stage.pass(2 * minute);
    assert.ok(stage.isOpen);
    assert.equal(stage.grantedMinutes, 10);
  });

  for (const [whose, limit] of [
    ['of the template', () => stage.configure({ maxGrants: 1 })],
    [
      'of the server',
      () => {
        stage.limits = { perUser: 0, perNamespace: 5 };
      },
    ],
  ] as const) {
    it(`begins at startAt only if the limits ${whose} allow it then, and says so`, async () => {
      await stage.stop();
      stage.configure({ start: { maxAhead: '24h' } });
      limit();
      await stage.start();
      const startAt = formatTime(stage.clock.now() + 40 * minute);
      await stage.asked({ startAt });
      await stage.voted('carol');
      assert.equal(
        stage.approved,
        `Unknown Scheduled: access starts at ${startAt}, if the limits on open grants allow it then; otherwise the request is denied`,
      );
    });
  }

  it('is denied by a vote while it waits only for startAt, before it ever opens', async () => {
    await stage.configured({ approvals: undefined, start: { maxAhead: '24h' } });
    await stage.asked({ startAt: formatTime(stage.clock.now() + 20 * minute) });
    await stage.voted('dave', { decision: 'Deny' });
    assert.equal(stage.status.approval?.state, 'Denied');
    await stage.pass(21 * minute);
    assert.deepEqual(stage.auditVerdicts, ['grant denied']);
  });

  it('is denied by a vote of before an edit that asks for no approvals any more', async () => {
    await stage.asked();
    await stage.stop();
    stage.vote('dave', { decision: 'Deny' });
    stage.configure({ approvals: undefined });
    await stage.start();
    await stage.pass();
    assert.deepEqual(stage.auditVerdicts, ['grant denied']);
  });

  describe('reads', () => {
    const requestOf = (name: string) => {
      const { uid = '' } = stage.cluster.find(podAccessRequests, { ...requestName, name })?.metadata ?? {};
      return { kind: 'PodAccessRequest', name, uid } as const;
    };
    let reviews: number;
    /** Calls since the last time. A review is a SubjectAccessReview. */
    const reads = (): string[] => {
      const calls = stage.cluster.calls.splice(0).filter(({ verb }) => verb === 'get' || verb === 'list');
      const all = [...calls.map(({ verb, plural }) => `${verb} ${plural}`), ...Array(reviews).fill('review')];
      reviews = 0;
      return all;
    };
    beforeEach(() => {
      const { allows } = stage.cluster;
      stage.cluster.allows = (question) => {
        reviews++;
        return allows(question);
      };
      reviews = 0;
      reads();
    });

    it('nothing while it waits for votes, and the permission of each voter while they are too few', async () => {
      stage.configure({ approvals: { ...peer, all: [{ name: 'peer', count: 2 }] } });
      stage.ask();
      await stage.pass(10 * minute);
      assert.deepEqual(reads(), []);
      await stage.voted('carol');
      assert.match(stage.approved, /peer 1 of 2/);
      assert.deepEqual([...new Set(reads())], ['review']);
    });

    it('the votes, the template, and the permission of the voter once to open', async () => {
      await stage.asked();
      reads();
      await stage.voted('carol');
      assert.ok(stage.isOpen);
      assert.deepEqual(reads(), ['list accessvotes', 'get podaccesstemplates', 'review']);
    });

    it('the template and the permission of the voter at the same time, after the votes', async () => {
      await stage.asked();
      reads();
      const [listed, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const answers: Record<string, Promise<void>> = { accessvotes: listed.promise, podaccesstemplates: read.promise };
      stage.cluster.fault = ({ plural }) => answers[plural];
      await stage.voted('carol');
      assert.deepEqual(reads(), ['list accessvotes']);
      listed.resolve();
      await stage.pass();
      assert.deepEqual(reads(), ['get podaccesstemplates', 'review']);
      assert.ok(!stage.isOpen);
      read.resolve();
      await stage.pass();
      assert.ok(stage.isOpen);
    });

    it('together with the other requests that are approved at the same time', async () => {
      const names = Array.from({ length: 20 }, (_, index) => `debug-${index}`);
      for (const name of names) stage.ask({}, { name });
      await stage.pass();
      reads();
      for (const name of names) stage.vote('carol', { request: requestOf(name) });
      await stage.pass(1000);
      assert.equal(stage.cluster.names(roleBindings).length, names.length);
      const counts = reads();
      for (const read of ['list accessvotes', 'get podaccesstemplates', 'review']) {
        const count = counts.filter((one) => one === read).length;
        assert.ok(count <= 4, `${count} times ${read}`);
      }
    });
  });

  it('keeps to two writes until it waits, and to two until it opens', async () => {
    await stage.asked();
    const patches = (): number => stage.cluster.calls.filter(({ verb }) => verb === 'patch').length;
    assert.equal(patches(), 2, 'the status of the template, and that of the request');
    await stage.voted('carol');
    stage.podBecomesReady();
    await stage.pass();
    assert.equal(patches(), 4);
  });
});
