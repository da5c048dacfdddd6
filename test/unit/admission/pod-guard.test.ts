import assert from 'node:assert/strict';
import { alice, connectReview, debugReview, paths, World } from './support.ts';

const pod = 'debug-1a2b3c4d-access';
const carol = { username: 'carol', uid: 'u-2', groups: ['devs', 'system:authenticated'] };
const firefighter = { username: 'dora', uid: 'u-3', groups: ['firefighters'] };

describe('guarding access pods', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.pod = {
      uid: 'p-1',
      ours: true,
      grants: [{ request: 'debug', subjects: [{ kind: 'User', name: 'alice' }] }],
    };
  });

  const enter = (userInfo: object, fields: Record<string, unknown> = {}) =>
    world.review(paths.guardPod, connectReview('exec', { name: pod, userInfo, ...fields }));

  it('lets those in whom the grant names, with one line and an Event', async () => {
    assert.equal((await enter(alice)).allowed, true);
    const [line] = world.lines;
    assert.deepEqual([line?.event, line?.verdict, line?.request, line?.pod], ['exec', 'allowed', 'debug', pod]);
    assert.equal(line?.what.uid, 'p-1');
    assert.deepEqual(
      world.connectEvents.map(({ type, reason }) => [type, reason]),
      [['Normal', 'PodExec']],
    );
  });

  it('lets a group in that the grant names', async () => {
    world.pod = { uid: 'p-1', ours: true, grants: [{ request: 'debug', subjects: [{ kind: 'Group', name: 'devs' }] }] };
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
    it(`refuses everybody else: ${way}`, async () => {
      const { allowed, status } = await world.review(paths.guardPod, review);
      assert.equal(allowed, false);
      assert.equal(status?.code, 403);
      assert.match(status?.message ?? '', /^NotYourPod: .*PodAccessRequest debug/);
      const [line] = world.lines;
      assert.deepEqual([line?.event, line?.verdict, line?.code], [way, 'denied', 'NotYourPod']);
      assert.deepEqual([line?.who.user, line?.request, line?.pod], ['carol', 'debug', pod]);
      assert.deepEqual(world.connectEvents, []);
    });
  }

  it('refuses everybody once no request stands behind the pod', async () => {
    world.pod = { uid: 'p-1', ours: true, grants: [] };
    assert.match((await enter(alice)).status?.message ?? '', /^AccessEnded: /);
  });

  it('leaves the pods of others alone, and says so when there is none', async () => {
    world.pod = { uid: 'p-9', ours: false, grants: [] };
    assert.equal((await enter(carol)).allowed, true);
    assert.equal(world.lines[0]?.verdict, 'allowed');
    world.pod = undefined;
    assert.deepEqual((await enter(carol)).status?.code, 404);
  });

  it('lets the break-glass group in, loudly', async () => {
    const { allowed, auditAnnotations } = await enter(firefighter);
    assert.equal(allowed, true);
    assert.equal(auditAnnotations?.['code'], 'BreakGlass');
    assert.deepEqual([world.lines[0]?.verdict, world.lines[0]?.code], ['allowed', 'BreakGlass']);
    assert.deepEqual(
      world.connectEvents.map(({ type, reason }) => [type, reason]),
      [['Warning', 'BreakGlass']],
    );
    assert.match(world.connectEvents[0]?.note ?? '', /^dora ran a command in container app/);
  });

  it('lets nobody in by break-glass without its line, or when there is no such group', async () => {
    world.journalWorks = false;
    assert.equal((await enter(firefighter)).allowed, false);
    assert.equal((await enter(alice)).allowed, true, 'who was let in already is not shut out by a full disk');
    world.journalWorks = true;
    world = new World();
    world.pod = { uid: 'p-1', ours: true, grants: [] };
    world.ports.breakGlassGroup = undefined;
    assert.equal((await enter(firefighter)).allowed, false);
  });

  it('refuses what it cannot look up', async () => {
    world.ports.connectTarget = () => Promise.reject(new Error('no API server'));
    const { allowed, status } = await enter(alice);
    assert.deepEqual([allowed, status?.code], [false, 500]);
  });

  it('writes no Event on dry run', async () => {
    for (const userInfo of [alice, firefighter]) await enter(userInfo, { dryRun: true });
    assert.deepEqual(world.connectEvents, []);
  });
});
