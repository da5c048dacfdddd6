import assert from 'node:assert/strict';
import type { ExtensionStatus } from '../../../../src/api/access/status.ts';
import { pods, roleBindings } from '../../../../src/api/resources.ts';
import { formatTime } from '../../../../src/kit/clock.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { LifecycleStage, peer } from './lifecycle-stage.ts';

const minute = 60_000;
const alone = { times: 2, total: '30m', approvals: 'None' };
const approved = { times: 2, total: '30m', approvals: 'Same' };

describe('an extension of open access', () => {
  let stage: LifecycleStage;
  /** When the time of access began, epoch ms. */
  let startMs: number;
  beforeEach(() => {
    stage = new LifecycleStage();
    stage.letApprove('alice', 'carol', 'dave');
  });
  afterEach(() => stage.stop());

  const entries = (): readonly ExtensionStatus[] => stage.status.extensions ?? [];
  const states = (): string[] => entries().map(({ state }) => state);
  const uids = (): string[] =>
    [pods, roleBindings].flatMap((resource) => stage.cluster.all(resource)).map(({ metadata }) => metadata.uid);
  const timeAt = (minutes: number): string => formatTime(startMs + minutes * minute);

  /** Opens access of 10 minutes through a template with this configuration. */
  const open = async (config: Readonly<Record<string, unknown>> = { extension: alone }): Promise<void> => {
    stage.configure(config);
    await stage.start();
    await stage.pass();
    await stage.asked();
    if (config['approvals']) await stage.voted('carol');
    stage.podBecomesReady();
    await stage.pass();
    assert.ok(stage.isOpen);
    startMs = Date.parse(stage.status.grant?.startsAt ?? stage.request?.metadata.creationTimestamp ?? '');
  };
  /** Asserts that access ends at this time, within seconds. */
  const endsAfter = async (minutes: number): Promise<void> => {
    await stage.pass(startMs + minutes * minute - 1000 - stage.clock.now());
    assert.ok(stage.isOpen, `open until a second before minute ${minutes}`);
    await stage.pass(2000);
    assert.equal(stage.isOpen, false, `closed at minute ${minutes}`);
  };

  it('moves its end, leaves the pod and the RoleBinding as they are, and is in the journal and an Event', async () => {
    await open();
    const before = uids();
    await stage.extended('5m', 'INC-42');
    const [entry] = entries();
    assert.equal(entry?.state, 'Granted');
    assert.equal(entry?.expiresAt, timeAt(15));
    assert.equal(stage.condition('AccessStillValid')?.message, `until ${timeAt(15)}`);
    assert.equal(stage.status.ready, true);
    assert.deepEqual(uids(), before);
    assert.deepEqual(stage.auditVerdicts, ['grant granted', 'grant extended']);
    const line = stage.lines.at(-1);
    assert.equal(line?.who.user, 'alice');
    assert.equal(line?.expiresAt, timeAt(15));
    assert.deepEqual([line?.message, line?.duration, line?.reason], ['extension 1', '5m', 'INC-42']);
    assert.equal(stage.events.at(-1)?.reason, 'AccessExtended');
    await endsAfter(15);
  });

  it('takes one write, and no call if none is asked for', async () => {
    await open();
    const calls = stage.cluster.calls.length;
    await stage.pass(minute);
    assert.equal(stage.cluster.calls.length, calls);
    await stage.extended('5m');
    const verbs = stage.cluster.calls.slice(calls).map(({ verb, plural }) => `${verb} ${plural}`);
    assert.deepEqual(
      verbs.filter((call) => call !== 'patch podaccessrequests'),
      [],
    );
    assert.ok(verbs.length <= 2, verbs.join(', '));
  });

  it('never passes the total', async () => {
    await open();
    await stage.extended('10h');
    assert.equal(entries()[0]?.expiresAt, timeAt(30));
    await stage.extended('1m');
    assert.match(entries()[1]?.message ?? '', /^NotExtendable: /);
    await endsAfter(30);
  });

  it('is granted as often as the template allows', async () => {
    await open();
    for (const _ of [1, 2, 3]) await stage.extended('1m');
    assert.deepEqual(states(), ['Granted', 'Granted', 'Denied']);
    assert.match(entries()[2]?.message ?? '', /^NotExtendable: /);
    assert.equal(stage.lines.at(-1)?.code, 'NotExtendable');
    assert.equal(stage.events.at(-1)?.reason, 'NotExtendable');
    await endsAfter(12);
  });

  it('never passes the deadline of a pod that was created before the template allowed extensions', async () => {
    await open({});
    await stage.configured({ extension: alone });
    await stage.extended('5m');
    assert.match(entries()[0]?.message ?? '', /^NotExtendable: the pod stops at /);
    await endsAfter(10);
  });

  describe('that others approve', () => {
    const withPeers = { approvals: peer, extension: approved };

    it('waits for the votes, and says so', async () => {
      await open(withPeers);
      await stage.extended('5m');
      const message = `waiting for approvals until ${timeAt(10)}: peer 0 of 1 from holders of the verb approve`;
      assert.deepEqual(entries(), [{ by: '5m', state: 'Pending', message }]);
      assert.equal(stage.status.ready, true);
      await endsAfter(10);
    });

    it('is granted with the vote, which the journal and the status name', async () => {
      await open(withPeers);
      await stage.extended('5m', 'INC-42');
      await stage.voted('dave', { about: 'Extension-1', reason: 'go on' });
      assert.deepEqual(states(), ['Granted']);
      assert.equal(entries()[0]?.votes?.length, 1);
      const [vote] = stage.lines.at(-1)?.votes ?? [];
      assert.deepEqual([vote?.voter, vote?.reason], ['dave', 'go on']);
      await endsAfter(15);
    });

    it('lasts as long as the smallest max of its votes', async () => {
      await open(withPeers);
      await stage.extended('15m');
      await stage.voted('dave', { about: 'Extension-1', max: '2m' });
      await endsAfter(12);
    });

    it('is refused for good by a denial, and the next one is decided by its own votes', async () => {
      await open(withPeers);
      await stage.extended('5m');
      await stage.voted('dave', { about: 'Extension-1', decision: 'Deny', reason: 'enough' });
      assert.equal(entries()[0]?.message, 'VoteDenied: dave denied the extension: enough');
      await stage.voted('carol', { about: 'Extension-1' });
      assert.deepEqual(states(), ['Denied']);
      assert.ok(stage.isOpen, 'the denial of an extension does not end access');
      await stage.extended('5m');
      assert.deepEqual(states(), ['Denied', 'Pending']);
      await stage.voted('carol', { about: 'Extension-2' });
      assert.deepEqual(states(), ['Denied', 'Granted']);
      await endsAfter(15);
    });

    for (const [what, vote] of [
      ['about the access', () => stage.vote('dave')],
      ['about another extension', () => stage.vote('dave', { about: 'Extension-2' })],
      ['of a person without the verb approve', () => stage.vote('eve', { about: 'Extension-1' })],
      ['of the requester', () => stage.vote('alice', { about: 'Extension-1' })],
      [
        'for an earlier version of the template',
        () => {
          stage.vote('dave', { about: 'Extension-1' });
          stage.configure({ maxDuration: '3h' });
        },
      ],
    ] as const) {
      it(`is not granted by a vote ${what}`, async () => {
        await open(withPeers);
        await stage.extended('5m');
        vote();
        await stage.pass(1000);
        assert.deepEqual(states(), ['Pending']);
        await endsAfter(10);
      });
    }

    it('is refused by the write that ends access, if no one decided it', async () => {
      await open({ ...withPeers, historyTTL: '1h' });
      await stage.extended('5m');
      const calls = stage.cluster.calls.length;
      await stage.voted('dave', { decision: 'Deny' });
      assert.equal(stage.isOpen, false);
      const refused = 'WrongState: access ended before the server decided the extension; create a new request';
      assert.deepEqual([states(), entries()[0]?.message], [['Denied'], refused]);
      const writes = stage.cluster.calls.slice(calls).filter(({ verb }) => verb === 'patch');
      assert.equal(writes.length, 1);
    });

    it('needs no votes if the template says so', async () => {
      await open({ approvals: peer, extension: alone });
      await stage.extended('5m');
      assert.deepEqual(states(), ['Granted']);
    });
  });

  describe('in the status', () => {
    it('stays refused if another client removes it, because the denial stays', async () => {
      await open({ approvals: peer, extension: approved });
      await stage.extended('5m');
      await stage.voted('dave', { about: 'Extension-1', decision: 'Deny' });
      stage.forge({ extensions: [] });
      await stage.pass();
      await stage.voted('carol', { about: 'Extension-1' });
      assert.deepEqual(states(), ['Denied']);
    });
  });

  describe('when something fails', () => {
    it('is written again after a refused write and after a conflict, with one audit line', async () => {
      await open();
      const faults = [new ApiError(500, 'InternalError', 'not now'), new ApiError(409, 'Conflict', 'changed')];
      stage.cluster.fault = ({ verb }) => {
        const fault = verb === 'patch' ? faults.pop() : undefined;
        if (fault) throw fault;
      };
      stage.extend('5m');
      await stage.pass(5000);
      assert.deepEqual(faults, []);
      assert.deepEqual(states(), ['Granted']);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'grant extended']);
      await endsAfter(15);
    });

    it('is not granted without its audit line', async () => {
      await open();
      stage.journalFails = true;
      stage.extend('5m');
      await stage.pass(5000);
      assert.deepEqual(states(), []);
      stage.journalFails = false;
      await stage.pass(5000);
      assert.deepEqual(states(), ['Granted']);
    });

    it('does not hold up the end of access', async () => {
      await open();
      stage.journalFails = true;
      stage.extend('5m');
      await endsAfter(10);
    });

    it('does not revive access if its write hangs until the end', async () => {
      await open();
      stage.cluster.fault = ({ verb }) => (verb === 'patch' ? new Promise(() => {}) : undefined);
      stage.extend('5m');
      await endsAfter(10);
    });

    it('does not revive access if its write arrives after the RoleBinding is deleted', async () => {
      await open();
      const extension = { by: '5m', state: 'Granted', expiresAt: timeAt(15) };
      stage.cluster.fault = ({ verb, plural }) => {
        if (verb !== 'delete' || plural !== 'rolebindings' || !stage.request || entries().length > 0) return;
        stage.forge({ extensions: [extension] });
      };
      await endsAfter(10);
      await stage.pass(1000);
      assert.equal(stage.request, undefined);
      assert.deepEqual(stage.auditVerdicts, ['grant granted', 'revocation revoked']);
    });

    it('is decided by the next leader, whichever call the leader before it stops at', async () => {
      for (let stopAt = 0, stopped = true; stopped; stopAt++) {
        stage = new LifecycleStage();
        stage.letApprove('carol', 'dave');
        await open({ approvals: peer, extension: approved });
        let calls = 0;
        stopped = false;
        stage.cluster.fault = () => {
          if (calls++ !== stopAt) return undefined;
          stopped = true;
          return new Promise(() => {});
        };
        await stage.extended('5m');
        await stage.voted('dave', { about: 'Extension-1' });
        await stage.stop();
        stage.cluster.fault = () => {};
        await stage.start();
        await stage.pass();
        assert.deepEqual(states(), ['Granted'], `stopped at call ${stopAt}`);
        assert.equal(entries()[0]?.expiresAt, timeAt(15));
        assert.equal(new Set(stage.lines.map(({ expiresAt }) => expiresAt)).size, 2);
        await endsAfter(15);
        if (stopped) await stage.stop();
        assert.ok(stopAt < 50);
      }
    });
  });

  describe('on clocks that jump', () => {
    it('counts from the end of access, not from a clock that was set back', async () => {
      await open();
      await stage.pass(startMs + 9 * minute - stage.clock.now());
      stage.clock.setWall(startMs - 60 * minute);
      await stage.extended('10m');
      assert.equal(entries()[0]?.expiresAt, timeAt(20));
      await stage.pass(10.5 * minute);
      assert.ok(stage.isOpen);
      await stage.pass(minute);
      assert.equal(stage.isOpen, false);
    });

    it('is not granted after the end, even if the clock is set back', async () => {
      await open();
      stage.clock.setWall(startMs - 60 * minute);
      // The end cannot be completed, so the request is still there.
      stage.cluster.fail('delete', 'rolebindings');
      await stage.pass(11 * minute);
      stage.extend('10m');
      await stage.pass(5000);
      assert.deepEqual(states(), []);
      stage.cluster.fault = () => {};
      await stage.pass(20_000);
      assert.equal(stage.isOpen, false);
      assert.equal(stage.request, undefined);
    });
  });

  for (const [what, config, minutes] of [
    ['the longest end that the template allows', { extension: alone }, 30],
    ['the granted end if the total is shorter', { extension: { ...alone, total: '5m' } }, 10],
    ['the granted end without extensions', {}, 10],
  ] as const) {
    it(`lets the pod run until ${what}`, async () => {
      await open(config);
      const [pod] = stage.cluster.all(pods);
      const { activeDeadlineSeconds } = (pod?.spec ?? {}) as { activeDeadlineSeconds?: number };
      assert.equal(activeDeadlineSeconds, minutes * 60);
    });
  }

  it('ends with the total after the template shortened it', async () => {
    await open();
    await stage.extended('15m');
    stage.configure({ maxDuration: '5m', extension: { ...alone, total: '12m' } });
    await endsAfter(12);
    assert.equal(stage.lines.at(-1)?.code, 'Shortened');
  });
});
