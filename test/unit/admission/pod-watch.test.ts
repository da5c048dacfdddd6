import assert from 'node:assert/strict';
import { confinedTo } from '../../../src/access/policy/granted-rules.ts';
import { allowed, connectReview, debugReview, entryGrant, paths, World, workloadPod } from './support.ts';

describe('recording of pod connections', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('writes an Event and an audit line, without the command', async () => {
    await allowed(world.review(paths.watchPod, connectReview('exec')));
    assert.deepEqual(world.connectEvents, [
      {
        type: 'Normal',
        reason: 'PodExec',
        namespace: 'payments',
        pod: 'web-0',
        note: 'alice ran a command in container app (an interactive session)',
      },
    ]);
    const [line] = world.lines;
    assert.equal(line?.event, 'exec');
    assert.equal(line?.verdict, 'observed');
    assert.equal(line?.what.operation, 'CONNECT');
    assert.equal(line?.pod, 'web-0');
    assert.equal(line?.container, 'app');
    assert.equal(line?.interactive, true);
    assert.doesNotMatch(JSON.stringify(world.lines) + JSON.stringify(world.connectEvents), /hunter2/);
  });

  it('distinguishes attach from exec, and calls with and without a terminal', async () => {
    await world.review(paths.watchPod, connectReview('attach', { object: { stdin: true, tty: false } }));
    assert.equal(world.connectEvents[0]?.reason, 'PodAttach');
    assert.match(world.connectEvents[0]?.note ?? '', /attached to the default container \(no terminal\)/);
    assert.equal(world.lines[0]?.event, 'attach');
    assert.equal(world.lines[0]?.interactive, false);
  });

  it('records all five subresources, with the pod and its UID, without ports, paths, or commands', async () => {
    world.pod = workloadPod();
    const ways: [Record<string, unknown>, string, string][] = [
      [connectReview('exec'), 'exec', 'ran a command in container app (an interactive session)'],
      [connectReview('attach'), 'attach', 'attached to container app (an interactive session)'],
      [connectReview('portforward', { object: { ports: [4711] } }), 'portforward', 'forwarded ports to the pod'],
      [
        connectReview('proxy', { name: 'https:web-0:4711', object: { path: '/hunter2' } }),
        'proxy',
        'sent an HTTP request to the pod',
      ],
      [
        debugReview(),
        'ephemeralcontainers',
        'added an ephemeral container to the pod: debugger (an interactive session)',
      ],
    ];
    for (const [review, event, note] of ways) {
      assert.equal((await world.review(paths.watchPod, review)).allowed, true);
      const line = world.lines.at(-1);
      assert.deepEqual([line?.event, line?.pod, line?.what.uid], [event, 'web-0', 'p-1']);
      assert.deepEqual(line?.who, { user: 'alice', uid: 'u-1', groups: ['devs', 'system:authenticated'] });
      assert.equal(world.connectEvents.at(-1)?.pod, 'web-0');
      assert.ok(world.connectEvents.at(-1)?.note.startsWith(`alice ${note}`), world.connectEvents.at(-1)?.note);
    }
    assert.equal(world.lines.length, ways.length);
    assert.equal(world.lines.at(-1)?.container, 'debugger');
    assert.doesNotMatch(JSON.stringify(world.lines) + JSON.stringify(world.connectEvents), /hunter2|4711\/|4711\]/);
  });

  for (const [name, pod] of [
    ['web-0', 'web-0'],
    ['web-0:8080', 'web-0'],
    ['http:web-0:8080', 'web-0'],
    [':web-0:', 'web-0'],
  ] as const) {
    it(`knows the pod of a proxy call to ${name}`, async () => {
      await world.review(paths.watchPod, connectReview('proxy', { name }));
      assert.equal(world.lines[0]?.pod, pod);
    });
  }

  it('names the request whose grant the caller uses', async () => {
    world.pod = workloadPod(
      entryGrant({ request: 'other', subjects: [{ kind: 'User', name: 'bob' }] }),
      entryGrant({ request: 'look', subjects: [{ kind: 'Group', name: 'devs' }] }),
    );
    await world.review(paths.watchPod, connectReview('exec'));
    assert.equal(world.lines[0]?.request, 'look');
  });

  describe('of a user with several grants on the pod', () => {
    const grant = (request: string, resource: string) =>
      entryGrant({
        request,
        rules: confinedTo('web-0', [{ apiGroups: [''], resources: [resource], verbs: ['create'] }]),
      });
    const named = async (event: 'exec' | 'attach' | 'portforward'): Promise<string | undefined> => {
      await world.review(paths.watchPod, connectReview(event));
      return world.lines.at(-1)?.request;
    };

    it('names the request whose grant permits the call', async () => {
      world.pod = workloadPod(grant('logs', 'pods/log'), grant('sh', 'pods/exec'), grant('ports', 'pods/portforward'));
      assert.equal(await named('exec'), 'sh');
      assert.equal(await named('portforward'), 'ports');
      assert.equal(await named('attach'), undefined, 'other RBAC permissions allowed it');
    });

    it('names the first of several that permit it', async () => {
      world.pod = workloadPod(grant('sh', 'pods/exec'), grant('sh2', 'pods/exec'));
      assert.equal(await named('exec'), 'sh');
    });

    it('names no grant that permits the call only through the gateway', async () => {
      const gateway = { ...grant('recorded', 'pods/exec'), viaGateway: true as const };
      world.pod = workloadPod(gateway, grant('sh', 'pods/exec'));
      assert.equal(await named('exec'), 'sh');
    });
  });

  it('writes no Event on dry run', async () => {
    await world.review(paths.watchPod, connectReview('exec', { dryRun: true }));
    assert.deepEqual(world.connectEvents, []);
    assert.equal(world.lines[0]?.dryRun, true);
  });

  it('never denies: not without a journal, not if the Event fails, not for odd objects', async () => {
    world.journalWorks = false;
    for (const object of [null, [], 'x', 7, { container: 7, stdin: 'yes' }]) {
      assert.equal((await world.review(paths.watchPod, connectReview('exec', { object }))).allowed, true);
    }
    world.ports.recordConnect = () => {
      throw new Error('no events today');
    };
    assert.equal((await world.review(paths.watchPod, connectReview('exec'))).allowed, true);
  });
});
