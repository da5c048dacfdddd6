import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('entering a pod', () => {
  let stage: AccessStage;
  const granted: Record<string, StoredRequest> = {};

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    const requests = [podRequest('own', { duration: '10m' }), execRequest('running', { duration: '10m' })];
    const [own, running] = await Promise.all(requests.map((one) => stage.createReady(stage.alice, one)));
    Object.assign(granted, { own, running });
  });
  after(() => stage?.close());

  const podOf = (name: string): string => granted[name]?.status?.podName ?? '';

  const eventNote = (pod: string, reason: string): Promise<string> =>
    until(
      `the Event ${reason} on ${pod}`,
      async () => {
        const json = await stage.kubectl('get', 'events.events.k8s.io', '-o', 'json');
        const { items } = JSON.parse(json) as {
          items: { reason: string; note: string; regarding: { name: string } }[];
        };
        return items.find((event) => event.reason === reason && event.regarding.name === pod)?.note;
      },
      { timeoutMs: 30_000, everyMs: 200 },
    );

  const pods = [
    ['own', 'her own pod', 'allowed'],
    ['running', 'the running pod that was opened to her', 'observed'],
  ] as const;
  for (const [name, title, verdict] of pods) {
    describe(`as alice, ${title}`, () => {
      it('opens the stream and runs the command', async () => {
        const args = ['exec', '-n', stage.namespace, podOf(name), '--', 'echo', `hello from ${name}`];
        const { stdout } = await stage.alice.kubectl(args);
        assert.equal(stdout, `hello from ${name}\n`);
      });

      it('leaves an audit line with the user and the pod, without the command', async () => {
        const line = await stage.auditLine(
          `exec into ${podOf(name)}`,
          ({ event, what }) => event === 'exec' && what.name === podOf(name),
        );
        assert.deepEqual([line.who.user, line.verdict, line.what.operation], ['alice', verdict, 'CONNECT']);
        assert.deepEqual([line['pod'], line['interactive']], [podOf(name), false]);
        assert.doesNotMatch(JSON.stringify(line), /hello/);
      });

      it('leaves the Event PodExec on the pod', async () => {
        assert.match(await eventNote(podOf(name), 'PodExec'), /^alice ran a command in container app/);
      });
    });
  }

  it('by attach is recorded as well', async () => {
    const pod = podOf('running');
    await stage.plane.kubectl(['attach', '-i', '-n', stage.namespace, pod], { input: 'exit\n' });
    const line = await stage.auditLine('attach', ({ event, what }) => event === 'attach' && what.name === pod);
    assert.deepEqual([line.who.user, line['pod']], ['sandbox-admin', pod]);
    assert.match(await eventNote(pod, 'PodAttach'), /^sandbox-admin attached to/);
  });

  it('is denied to another user of the requester’s group', async () => {
    const args = ['exec', '-n', stage.namespace, podOf('own'), '--', 'true'];
    const { code, stderr } = await stage.carol.kubectl(args, { reject: false });
    assert.notEqual(code, 0);
    assert.match(stderr, /carol" cannot create resource "pods\/exec"|cannot (get|create) resource "pods\/exec"/);
  });

  it('of a workload still works while the server is down', async () => {
    const { installation } = stage.server;
    await stage.stop();
    const { stdout } = await stage.alice.kubectl([
      'exec',
      '-n',
      stage.namespace,
      podOf('running'),
      '--',
      'echo',
      'still here',
    ]);
    await stage.start({ installation });
    assert.equal(stdout, 'still here\n');
  });
});
