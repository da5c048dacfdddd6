import assert from 'node:assert/strict';
import { confinedTo } from '../../../src/access/policy/granted-rules.ts';
import { pluck } from '../../support/pluck.ts';
import {
  alice,
  connectReview,
  debugReview,
  enteredPod,
  entryGrant,
  paths,
  accessPod as pod,
  World,
  workloadPod,
} from './support.ts';

const carol = { username: 'carol', uid: 'u-2', groups: ['devs', 'system:authenticated'] };
const firefighter = { username: 'dora', uid: 'u-3', groups: ['firefighters'] };

describe('guarding access pods', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.pod = enteredPod(entryGrant());
  });

  const enter = (userInfo: object, fields: Record<string, unknown> = {}) =>
    world.review(paths.guardPod, connectReview('exec', { name: pod, userInfo, ...fields }));

  it('allows subjects of the grant, with one audit line and an Event', async () => {
    assert.equal((await enter(alice)).allowed, true);
    const [line] = world.lines;
    assert.deepEqual([line?.event, line?.verdict, line?.request, line?.pod], ['exec', 'allowed', 'debug', pod]);
    assert.equal(line?.what.uid, 'p-1');
    assert.deepEqual(pluck(world.connectEvents, 'type', 'reason'), [['Normal', 'PodExec']]);
  });

  it('allows a group of the grant', async () => {
    world.pod = enteredPod(entryGrant({ subjects: [{ kind: 'Group', name: 'devs' }] }));
    assert.equal((await enter(carol)).allowed, true);
    assert.equal((await enter({ username: 'devs', groups: [] })).allowed, false);
    const others = Array.from({ length: 40 }, (_, index) => `team-${index}`);
    await enter({ ...carol, groups: [...others, 'devs'] });
    await enter({ ...firefighter, groups: [...others, 'firefighters'] });
    assert.deepEqual(
      world.lines.slice(-2).map(({ who }) => who.groups?.[0]),
      ['devs', 'firefighters'],
      'the journal keeps only some groups, and these are what counts',
    );
  });

  const ways: [string, Record<string, unknown>][] = [
    ['exec', connectReview('exec', { name: pod, userInfo: carol })],
    ['attach', connectReview('attach', { name: pod, userInfo: carol })],
    ['portforward', connectReview('portforward', { name: pod, userInfo: carol })],
    ['proxy', connectReview('proxy', { name: `http:${pod}:80`, userInfo: carol })],
    ['ephemeralcontainers', debugReview({ name: pod, userInfo: carol })],
  ];
  for (const [way, review] of ways) {
    it(`denies all other callers: ${way}`, async () => {
      const { allowed, status } = await world.review(paths.guardPod, review);
      assert.equal(allowed, false);
      assert.equal(status?.code, 403);
      assert.match(status?.message ?? '', /^NoGrant: .*PodAccessRequest debug/);
      const [line] = world.lines;
      assert.deepEqual([line?.event, line?.verdict, line?.code], [way, 'denied', 'NoGrant']);
      assert.deepEqual([line?.who.user, line?.request, line?.pod], ['carol', 'debug', pod]);
      assert.deepEqual(world.connectEvents, []);
    });
  }

  it('denies all callers if the pod has no open request', async () => {
    world.pod = enteredPod();
    assert.match((await enter(alice)).status?.message ?? '', /^NoGrant: /);
  });

  it('allows pods that the server did not create, and reports a missing pod', async () => {
    world.pod = workloadPod();
    assert.equal((await enter(carol)).allowed, true);
    assert.equal(world.lines[0]?.verdict, 'allowed');
    world.pod = undefined;
    assert.deepEqual((await enter(carol)).status?.code, 404);
  });

  it('allows the break-glass group, with a Warning Event', async () => {
    const { allowed, auditAnnotations } = await enter(firefighter);
    assert.equal(allowed, true);
    assert.equal(auditAnnotations?.['code'], 'BreakGlass');
    assert.deepEqual([world.lines[0]?.verdict, world.lines[0]?.code], ['allowed', 'BreakGlass']);
    assert.deepEqual(pluck(world.connectEvents, 'type', 'reason'), [['Warning', 'BreakGlass']]);
    assert.match(world.connectEvents[0]?.note ?? '', /^dora ran a command in container app/);
  });

  it('denies break-glass calls without an audit line or without a configured group', async () => {
    world.journalWorks = false;
    assert.equal((await enter(firefighter)).allowed, false);
    assert.equal((await enter(alice)).allowed, true, 'who was let in already is not shut out by a full disk');
    world.journalWorks = true;
    world = new World();
    world.pod = enteredPod();
    world.ports.breakGlassGroup = undefined;
    assert.equal((await enter(firefighter)).allowed, false);
  });

  it('denies calls if it cannot read the pod', async () => {
    world.ports.connectTarget = () => Promise.reject(new Error('no API server'));
    const { allowed, status } = await enter(alice);
    assert.deepEqual([allowed, status?.code], [false, 500]);
  });

  it('writes no Event on dry run', async () => {
    for (const userInfo of [alice, firefighter]) await enter(userInfo, { dryRun: true });
    assert.deepEqual(world.connectEvents, []);
  });

  describe('of a Gateway grant', () => {
    beforeEach(() => {
      world.pod = enteredPod(entryGrant({ viaGateway: true }));
    });

    for (const [way, review] of ways) {
      it(`denies its subject to enter directly, and names the command: ${way}`, async () => {
        const { allowed, status } = await world.review(paths.guardPod, { ...review, userInfo: alice });
        assert.equal(allowed, false);
        assert.equal(
          status?.message,
          `UseGateway: the grant of PodAccessRequest debug opens pod ${pod} only through the gateway; ` +
            'run kubectl drawbridge exec debug -n payments, or, for calls other than exec, ' +
            'kubectl drawbridge use debug -n payments',
        );
        assert.deepEqual([world.lines[0]?.verdict, world.lines[0]?.code], ['denied', 'UseGateway']);
        assert.deepEqual(world.connectEvents, []);
      });
    }

    it('denies other users, and allows the break-glass group, as for any access pod', async () => {
      assert.match((await enter(carol)).status?.message ?? '', /^NoGrant: /);
      assert.equal((await enter(firefighter)).auditAnnotations?.['code'], 'BreakGlass');
    });

    it('denies the user of the gateway if the API server calls this webhook for it', async () => {
      assert.equal((await enter(gateway)).allowed, false);
    });
  });
});

const gateway = { username: 'system:serviceaccount:drawbridge-system:drawbridge-gateway', uid: 'u-9', groups: [] };

describe('guarding against the gateway', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.pod = enteredPod(entryGrant({ viaGateway: true }));
  });

  const viaGateway = (way: 'exec' | 'attach' | 'portforward' = 'exec', fields: object = {}) =>
    world.review(paths.guardGateway, connectReview(way, { name: pod, userInfo: gateway, ...fields }));

  for (const way of ['exec', 'attach', 'portforward'] as const) {
    it(`allows ${way} to a pod of an open Gateway grant, with the request in the audit line and an Event`, async () => {
      assert.equal((await viaGateway(way)).allowed, true);
      const [line] = world.lines;
      assert.deepEqual([line?.event, line?.verdict, line?.request, line?.what.uid], [way, 'allowed', 'debug', 'p-1']);
      assert.equal(world.connectEvents.length, 1);
    });
  }

  it('names the grant that permits the call, of several on the pod', async () => {
    const grant = (request: string, resource: string) => {
      const rules = confinedTo(pod, [{ apiGroups: [''], resources: [resource], verbs: ['create'] }]);
      return entryGrant({ request, rules, viaGateway: true });
    };
    world.pod = enteredPod(grant('ports', 'pods/portforward'), grant('sh', 'pods/exec'));
    await viaGateway();
    assert.equal(world.lines[0]?.request, 'sh');
  });

  for (const [title, target] of [
    ['that has no grant', workloadPod()],
    ['of a direct grant', enteredPod(entryGrant())],
    ['that does not exist', undefined],
  ] as const) {
    it(`denies a pod ${title}`, async () => {
      world.pod = target;
      const { status } = await viaGateway();
      assert.match(status?.message ?? '', /^NoGatewayGrant: no open grant lets users enter pod debug-1a2b3c4d-access/);
      assert.deepEqual([world.lines[0]?.verdict, world.lines[0]?.code], ['denied', 'NoGatewayGrant']);
      assert.deepEqual(world.connectEvents, []);
    });
  }

  for (const [way, review] of [
    ['proxy', connectReview('proxy', { name: `http:${pod}:80`, userInfo: gateway })],
    ['ephemeralcontainers', debugReview({ name: pod, userInfo: gateway })],
  ] as const) {
    it(`denies ${way} to every pod, also to that of a Gateway grant`, async () => {
      const { allowed, status } = await world.review(paths.guardGateway, review);
      assert.equal(allowed, false);
      assert.match(status?.message ?? '', new RegExp(`^TokenMisused: the gateway called pods/${way}`));
    });
  }

  it('denies if it cannot find out, and writes no Event on dry run', async () => {
    await viaGateway('exec', { dryRun: true });
    assert.deepEqual(world.connectEvents, []);
    world.ports.gatewayTarget = () => Promise.reject(new Error('no keys'));
    assert.equal((await viaGateway()).allowed, false);
  });
});
