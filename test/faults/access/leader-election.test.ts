import assert from 'node:assert/strict';
import { install } from '../../../sandbox/installation.ts';
import { freePorts } from '../../../sandbox/ports.ts';
import { ServerProcess } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { deadlineOf, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { orphansIn } from '../../support/orphans.ts';
import { sharedPlane } from '../../support/plane.ts';

const leaseUrl = '/apis/coordination.k8s.io/v1/namespaces/drawbridge-system/leases/drawbridge-access';
const elected = (identity: string): string[] => ['--leader-elect=true', `--identity=${identity}`];

describe('two servers with leader election', () => {
  let stage: AccessStage;
  let right: ServerProcess;
  let probes = 0;
  /** Non-GET calls of `right`, as they pass the proxy in front of it: method and path. */
  const writesOfRight: string[] = [];

  before(async function () {
    this.timeout(180_000);
    const plane = await sharedPlane();
    // Deletes the Lease, because a server that was killed earlier in this run may still hold it.
    await plane.kubectl(['delete', 'lease', '-n', 'drawbridge-system', 'drawbridge-access', '--ignore-not-found']);
    stage = await AccessStage.open({ flags: elected('left') });
    await leaderIs('left');
    const proxy = await plane.proxy({
      onRequest: ({ method, path }) => {
        if (method !== 'GET') writesOfRight.push(`${method} ${path}`);
        return 'pass';
      },
    });
    const [port = 0] = await freePorts(1);
    right = await ServerProcess.start(plane, {
      installation: { ...stage.server.installation, port },
      apiserver: proxy.server,
      flags: elected('right'),
    });
  });

  after(async () => {
    await right?.stop();
    await stage?.close();
  });

  const leader = async (): Promise<string | undefined> => {
    const { body } = await stage.plane.probe(leaseUrl);
    return (body as { spec?: { holderIdentity?: string } }).spec?.holderIdentity;
  };

  const leaderIs = (identity: string, timeoutMs = 30_000): Promise<boolean> =>
    until(`${identity} to lead`, async () => (await leader()) === identity, { timeoutMs, everyMs: 20 });

  /** Resolves once the API server calls the webhooks of the server: it notices the new port a moment later. */
  const sendWebhooksTo = async (server: ServerProcess): Promise<void> => {
    await install(stage.plane, server.installation.port);
    const name = `probe-${++probes}`;
    const isCalled = async (): Promise<boolean> => {
      await stage.create(stage.alice, podRequest(name), '?dryRun=All');
      return (await verdicts(server, name)).length > 0;
    };
    await until('the API server to call its webhooks', isCalled, { timeoutMs: 30_000 });
  };

  const whenClosed = async (request: StoredRequest, timeoutMs: number): Promise<number> => {
    const closed = async (): Promise<boolean> =>
      !(await stage.children(request.metadata.uid)).some(({ kind }) => kind === 'RoleBinding');
    await until('the RoleBinding to be gone', closed, { timeoutMs, everyMs: 20 });
    return Date.now();
  };

  /** Whether only the leader may make this write: all except the Lease and the heads of the audit journal. */
  const isLeaderWrite = (write: string): boolean => !/\/(leases|configmaps)\//.test(write);

  const verdicts = async (server: ServerProcess, name: string): Promise<string[]> =>
    (await server.audit(({ what }) => what.name === name)).map(({ event, verdict }) => `${event} ${verdict}`);

  it('both answer webhooks, and only one of them grants', async () => {
    await sendWebhooksTo(right);
    await stage.createReady(stage.alice, podRequest('by-right'));
    assert.deepEqual(await verdicts(right, 'by-right'), ['admission allowed']);
    assert.deepEqual(await verdicts(stage.server, 'by-right'), ['grant granted']);

    await sendWebhooksTo(stage.server);
    await stage.createReady(stage.alice, podRequest('by-left'));
    assert.deepEqual(await verdicts(stage.server, 'by-left'), ['admission allowed', 'grant granted']);
    assert.deepEqual(await verdicts(right, 'by-left'), []);
    assert.deepEqual(writesOfRight.filter(isLeaderWrite), []);
  });

  it('hand over the leadership and the grants when the leader stops', async () => {
    await sendWebhooksTo(right);
    const request = await stage.createReady(stage.alice, podRequest('handed-over', { duration: '6s' }));
    const stopping = stage.stop();
    const stoppedMs = Date.now();
    await leaderIs('right');
    const ledMs = Date.now();
    const goneMs = await whenClosed(request, 10_000);
    await stopping;
    const deadlineMs = deadlineOf(request);
    console.log(
      `      new leader ${ledMs - stoppedMs} ms after SIGTERM; RoleBinding gone ${goneMs - deadlineMs} ms after its deadline, ${goneMs - ledMs} ms after the election`,
    );
    // A standby reads the Lease about twice a second. Its write of the Lease and the start of its controllers add to that.
    assert.ok(ledMs - stoppedMs < 2000, `${ledMs - stoppedMs} ms`);
    assert.ok(goneMs <= Math.max(deadlineMs + 1000, ledMs + 2000));
    await stage.closed(request);
    // The new leader must keep the grants of the old one.
    assert.equal((await stage.read('PodAccessRequest', 'by-left'))?.status?.ready, true);
    assert.deepEqual(await orphansIn(stage.plane, stage.namespace), []);
  });

  it('do not wait for a frozen leader, which writes nothing after it resumes', async function () {
    this.timeout(90_000);
    await stage.start({ installation: stage.server.installation, flags: elected('left') });
    await leaderIs('right');
    const request = await stage.createReady(stage.alice, podRequest('frozen', { duration: '6s' }));
    await sendWebhooksTo(stage.server);
    right.signal('SIGSTOP');
    const frozenMs = Date.now();
    await leaderIs('left', 25_000);
    const ledMs = Date.now();
    const goneMs = await whenClosed(request, 10_000);
    console.log(
      `      new leader ${ledMs - frozenMs} ms after the freeze; RoleBinding gone ${goneMs - ledMs} ms later`,
    );
    assert.ok(ledMs - frozenMs < 18_000);
    assert.ok(goneMs <= ledMs + 2000);

    // Causes writes of every kind by any process that believes it is the leader.
    const ending = await stage.createReady(stage.alice, podRequest('while-frozen', { duration: '6s' }));
    const before = writesOfRight.length;
    right.signal('SIGCONT');
    const noticed = async (): Promise<boolean> => /no longer leading/.test(await right.log());
    await until('the thawed one to lead no more', noticed, { timeoutMs: 30_000 });
    const asked = await stage.createReady(stage.alice, podRequest('after-thaw'));
    await stage.closed(ending);
    await stage.alice.call('DELETE', stage.urlOf(asked.kind, asked.metadata.name));
    await stage.closed(asked);
    // The resumed server answers webhooks again and observes a complete grant.
    await sendWebhooksTo(right);
    await stage.runMarkerGrant();
    assert.deepEqual(writesOfRight.slice(before).filter(isLeaderWrite), []);
    assert.equal(await leader(), 'left');
    assert.ok(right.running);
  });
});
