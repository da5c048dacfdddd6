import assert from 'node:assert/strict';
import { History } from '../../../../src/access/lifecycle/history.ts';
import type { RequestView } from '../../../../src/access/stores/access-views.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { pods, roleBindings } from '../../../../src/api/resources.ts';
import { LifecycleStage, peer, requestName, templateName } from './lifecycle-stage.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

describe('the history of requests', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.letApprove('carol');
    await stage.start();
  });
  const { surplus } = History.prototype;
  afterEach(() => {
    History.prototype.surplus = surplus;
    return stage.stop();
  });

  /** The names of the requests for which the server counts others, from now on. */
  const countSurplus = (): string[] => {
    const counted: string[] = [];
    History.prototype.surplus = function (request, ...rest) {
      counted.push(request.name);
      return surplus.call(this, request, ...rest);
    };
    return counted;
  };
  const viewOf = (name: string): RequestView => {
    const { uid } = stage.cluster.find(podAccessRequests, { ...requestName, name })?.metadata ?? {};
    return { key: `${requestName.namespace}/${name}`, uid } as RequestView;
  };

  const names = (): string[] => stage.cluster.names(podAccessRequests);
  const granted = ({ generated = true } = {}): Promise<void> => stage.granted({ generated });
  const ended = async (): Promise<void> => {
    await granted();
    await stage.pass(10 * minute);
    assert.equal(stage.status.ended?.how, 'Expired');
  };
  const callsOf = async (what: () => Promise<void>): Promise<string[]> => {
    stage.cluster.calls.length = 0;
    await what();
    return stage.cluster.calls.map(({ verb, plural }) => `${verb} ${plural}`);
  };

  describe('without historyTTL', () => {
    it('keeps a request whose name was generated for 24 h after it expired, without its objects', async () => {
      await granted();
      const { expiresAt } = stage.status.grant ?? {};
      await stage.pass(10 * minute);
      assert.deepEqual(stage.children, []);
      const { ended, ready } = stage.status;
      assert.deepEqual([ready, ended?.how, ended?.reason, ended?.at], [false, 'Expired', 'Expired', expiresAt]);
      assert.equal(Date.parse(ended?.keptUntil ?? '') - Date.parse(ended?.at ?? ''), 24 * hour);
      await stage.pass(24 * hour - minute);
      assert.ok(stage.request);
      await stage.pass(2 * minute);
      assert.deepEqual(names(), []);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });

    it('lets a request that its user named go at its end', async () => {
      await granted({ generated: false });
      await stage.pass(10 * minute);
      assert.deepEqual(names(), []);
    });

    it('keeps a denied request with a generated name for 24 h, and another one as long as it asked', async () => {
      stage.ask({ templateName: 'none' }, { generated: true });
      await stage.asked({ templateName: 'none', duration: '30m' }, { name: 'named' });
      const { ended } = stage.status;
      assert.deepEqual([ended?.how, ended?.reason, ended?.by], ['Denied', 'TemplateNotFound', undefined]);
      await stage.pass(29 * minute);
      assert.equal(names().length, 2);
      await stage.pass(2 * minute);
      assert.deepEqual(names(), ['payments/debug']);
      await stage.pass(24 * hour);
      assert.deepEqual(names(), []);
    });

    it('keeps a withdrawn request', async () => {
      await stage.configured({ approvals: peer });
      await stage.asked({}, { generated: true });
      stage.change({ revoked: true });
      await stage.pass(2 * hour);
      assert.equal(stage.status.ended?.how, 'Revoked');
      stage.vote('carol');
      await stage.pass(minute);
      assert.deepEqual(stage.children, [], 'a vote opens it no more');
    });

    it('names the person whose vote ended the access', async () => {
      await granted();
      stage.vote('carol', { decision: 'Deny', reason: 'no' });
      await stage.pass(minute);
      const { how, reason, by } = stage.status.ended ?? {};
      assert.deepEqual([how, reason, by], ['Revoked', 'VoteDenied', 'carol']);
      assert.deepEqual(stage.children, []);
    });
  });

  describe('with historyTTL', () => {
    const cases: [string, boolean, number][] = [
      ['2h', true, 2 * hour],
      ['2h', false, 2 * hour],
      ['0s', true, 0],
      ['168h', false, 168 * hour],
    ];
    for (const [historyTTL, generated, keptMs] of cases) {
      it(`${historyTTL} keeps a request that has a ${generated ? 'generated' : 'chosen'} name that long`, async () => {
        await stage.configured({ historyTTL });
        await granted({ generated });
        await stage.pass(10 * minute);
        if (keptMs > 0) {
          await stage.pass(keptMs - minute);
          assert.equal(names().length, 1);
          await stage.pass(2 * minute);
        }
        assert.deepEqual(names(), []);
      });
    }

    it('is fixed at the end: neither an edit nor the deletion of the template changes it', async () => {
      await stage.configured({ historyTTL: '2h' });
      await granted();
      await stage.pass(10 * minute);
      stage.configure({ historyTTL: '0s' });
      await stage.pass(hour);
      stage.cluster.drop(podAccessTemplates, templateName);
      await stage.pass(59 * minute);
      assert.equal(names().length, 1);
      await stage.pass(2 * minute);
      assert.deepEqual(names(), []);
    });
  });

  describe('an ended request', () => {
    it('costs a new leader no call', async () => {
      await ended();
      await stage.stop();
      const calls = await callsOf(async () => {
        await stage.start();
        await stage.pass(hour);
      });
      assert.deepEqual(calls, []);
      assert.equal(names().length, 1);
      await stage.pass(24 * hour);
      assert.deepEqual(names(), [], 'the new leader deletes it on time');
    });

    it('never opens again: not after a revocation, a claim, an extension, a vote, or an edit', async () => {
      await ended();
      const events: (() => unknown)[] = [
        () => stage.change({ revoked: true }),
        () => stage.claim(),
        () => stage.extend('10m'),
        () => stage.vote('carol'),
        () => stage.configure({ maxDuration: '99h', historyTTL: '0s' }),
      ];
      for (const happen of events) {
        const calls = await callsOf(async () => {
          happen();
          await stage.pass(minute);
        });
        assert.deepEqual(
          calls.filter((call) => !call.includes('template')),
          [],
        );
        assert.deepEqual(stage.children, []);
      }
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });

    it('loses what an aborted call creates after the end', async () => {
      await granted();
      const [late] = stage.cluster.all(roleBindings);
      assert.ok(late);
      await stage.pass(10 * minute);
      const { uid: _, ...metadata } = late.metadata;
      stage.cluster.put(roleBindings, { ...late, metadata });
      await stage.pass(2 * second);
      assert.deepEqual(stage.children, []);
      assert.equal(stage.lines.at(-1)?.code, 'Orphaned');
    });

    it('loses what an aborted call created while the server saw the end late', async () => {
      await granted();
      const [late] = stage.cluster.all(roleBindings);
      assert.ok(late);
      stage.cluster.lagging = podAccessRequests;
      await stage.pass(10 * minute);
      const { uid: _, ...metadata } = late.metadata;
      stage.cluster.put(roleBindings, { ...late, metadata });
      await stage.pass(second);
      stage.cluster.deliverEvents();
      await stage.pass(2 * second);
      assert.deepEqual(stage.children, []);
    });

    it('goes when a user deletes it, without a second report', async () => {
      await ended();
      const calls = await callsOf(async () => {
        await stage.cluster.client.delete(podAccessRequests, requestName);
        await stage.pass();
      });
      assert.deepEqual(names(), []);
      assert.deepEqual(calls, ['delete podaccessrequests', 'patch podaccessrequests']);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });

    it('goes before its time if its requester has 50 later ones', async () => {
      for (let i = 0; i <= 50; i++) {
        stage.ask({ templateName: 'none' }, { name: `debug-${i}`, generated: true });
        await stage.pass(second);
      }
      await stage.pass(minute);
      assert.equal(names().length, 50);
      assert.ok(!names().includes('payments/debug-0'));
      stage.ask({ templateName: 'none' }, { name: 'other', generated: true, user: 'carol' });
      await stage.pass(minute);
      assert.equal(names().length, 51, 'others keep theirs');
    });

    it('counts the others once after its end, and not at all if it goes at its end', async () => {
      const counts = countSurplus();
      for (const name of ['kept-1', 'kept-2']) stage.ask({}, { name, generated: true });
      stage.ask({}, { name: 'named' });
      await stage.pass(11 * minute);
      const atEnd = [...counts.splice(0)];
      assert.ok(!atEnd.includes('named'));
      for (const name of ['kept-1', 'kept-2']) {
        assert.ok(atEnd.filter((counted) => counted === name).length <= 2, 'the store may show the end late');
        const request = stage.cluster.find(podAccessRequests, { ...requestName, name });
        stage.cluster.put(podAccessRequests, { ...request } as KubeObject);
      }
      await stage.pass(minute);
      assert.deepEqual(counts, []);
    });

    it('stays if it was too many for a moment, also the second time', async () => {
      stage.ask({}, { generated: true });
      await stage.pass(11 * minute);
      let asked = 0;
      History.prototype.surplus = (request) => {
        if (request.name !== 'debug') return [viewOf(requestName.name)];
        asked++;
        return asked % 2 === 1 ? [request] : [];
      };
      for (const name of ['one', 'two']) {
        stage.ask({ templateName: 'none' }, { name, generated: true });
        await stage.pass(minute);
        stage.change({});
        await stage.pass(minute);
      }
      assert.ok(stage.request);
      assert.equal(asked, 4);
    });

    it('does not count against limits', async () => {
      await stage.stop();
      stage.limits = { perUser: 1, perNamespace: 1 };
      await stage.start();
      await ended();
      await stage.asked({}, { name: 'second', generated: true });
      assert.equal(stage.cluster.names(roleBindings).length, 1);
    });
  });

  describe('a client that writes the status', () => {
    it('cannot open access again by removing its end, as CRDs of an earlier version do', async () => {
      await granted();
      for (const { metadata } of stage.cluster.all(pods)) stage.cluster.drop(pods, metadata);
      await stage.pass();
      assert.equal(stage.status.ended?.reason, 'TargetPodGone');
      stage.forge({ ended: undefined });
      await stage.restart();
      await stage.pass(minute);
      assert.deepEqual(stage.children, []);
      await stage.pass(10 * minute);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });
  });
});
