import assert from 'node:assert/strict';
import { tokenReviewAuthenticator } from '../../../examples/inventory/components/sdk/callers.ts';
import { type ComponentServer, serveComponent } from '../../../examples/inventory/components/sdk/component-server.ts';
import { ownCredentials } from '../../../examples/inventory/components/sdk/credentials.ts';
import { httpTransports } from '../../../examples/inventory/components/sdk/http-transports.ts';
import { connect } from '../../../examples/inventory/components/sdk/kubernetes.ts';
import { InventoryServer } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { systemClock as clock } from '../../../src/kit/clock.ts';
import { report } from '../../support/inventory/run-report.ts';
import type { ScriptedComponent } from '../../support/inventory/scripted-component.ts';
import { ServiceAddress } from '../../support/inventory/service-address.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { patchStatus } from '../../support/inventory/status-patch.ts';
import { sharedPlane } from '../../support/plane.ts';

const home = 'drawbridge-system';
const lease = 'drawbridge-inventory';
const leaseUrl = `/apis/coordination.k8s.io/v1/namespaces/${home}/leases/${lease}`;
const elected = (identity: string): string[] => ['--leader-elect=true', `--identity=${identity}`];
const patience = { timeoutMs: 60_000, everyMs: 20 };
const names = ['e0', 'e1', 'e2', 'e3', 'e4'];

describe('two servers of the inventory', function () {
  this.timeout(180_000);
  let plane: Plane;
  let stage: InventoryStage;
  let left: InventoryServer;
  let right: InventoryServer;
  let webhooks: ServiceAddress;
  let callbacks: ServiceAddress;
  /** Answers immediately by a script. */
  let quick: ScriptedComponent;
  /** Runs asynchronously and reports. */
  let slow: ComponentServer;
  const closers: (() => unknown)[] = [];
  /** Calls of both components. */
  const calls: ReconcileRequest[] = [];
  const resume = Promise.withResolvers<void>();
  /** Status codes of the reports of `slow`. */
  const answers: number[] = [];
  /** Non-GET calls of `right` that pass its proxy. */
  const writesOfRight: string[] = [];

  before(async () => {
    plane = await sharedPlane();
    await deleteLease();
    [webhooks, callbacks] = await Promise.all([ServiceAddress.open(), ServiceAddress.open()]);
    const front = { webhooks: webhooks.port, callbacks: callbacks.port };
    stage = await InventoryStage.open(elected('left'), { front });
    left = stage.server;
    leadTo(left);
    await leaderIs('left');
    const proxy = await plane.proxy({
      onRequest: ({ method, path }) => {
        if (method !== 'GET') writesOfRight.push(`${method} ${path}`);
        return 'pass';
      },
    });
    closers.push(() => proxy.close());
    right = await InventoryServer.start(plane, {
      front,
      apiserver: proxy.server,
      namespaces: [stage.namespace],
      flags: elected('right'),
    });
    leadTo(left, right);
    quick = await stage.component('quick', () => ({ outcome: 'Done' }), { timeoutSeconds: 30 });
    quick.onCall(({ request }) => calls.push(request));
    slow = await startSlow();
    await stage.register('slow', `http://127.0.0.1:${slow.port}`);
  });
  after(async () => {
    right?.signal('SIGCONT');
    await right?.stop();
    if (left) leadTo(left);
    await stage?.close();
    await slow?.close();
    for (const close of closers) await close();
    webhooks?.close();
    callbacks?.close();
    if (plane) await deleteLease();
  });

  it('when the leader is killed: synchronous runs are retried, asynchronous ones continue, none is doubled', async () => {
    const pendingRuns = new Map<string, ReconcileRequest>();
    quick.script = (run) => {
      pendingRuns.set(run.entry.id, run);
      return new Promise(() => undefined);
    };
    const entries = await Promise.all(names.map((name) => stage.entry(name)));
    await stage.until('the runs to be in flight', () => pendingRuns.size === names.length);
    await stage.until('the slow runs to be accepted', async () => {
      const records = await stage.records();
      return records.filter(({ asynchronous, phase }) => asynchronous && phase === 'Running').length === names.length;
    });
    for (const run of pendingRuns.values()) assert.equal(await write(run, 'first'), 200);

    const verdicts: number[][] = [];
    quick.script = async (run) => {
      const before = pendingRuns.get(run.entry.id);
      assert.ok(before);
      verdicts.push([await write(before, 'first, again'), await write(run, 'second')]);
      return { outcome: 'Done' };
    };
    await left.stop('SIGKILL');
    const killed = performance.now();
    resume.resolve();
    await leaderIs('right');
    const led = performance.now();
    await allReady();
    const tookMs = performance.now() - killed;
    console.log(`      led after ${(led - killed).toFixed(0)} ms, all is Ready after ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < 30_000, `${tookMs} ms`);

    assert.deepEqual(
      verdicts,
      names.map(() => [403, 200]),
      'only the current run writes',
    );
    for (const { ref } of entries) {
      assert.deepEqual(seqsOf(ref.uid, 'quick'), [1, 2]);
      assert.deepEqual(seqsOf(ref.uid, 'slow'), [1]);
    }
    assert.ok(answers.includes(503), 'no replica accepted reports for a while');
    assert.equal(answers.filter((status) => status === 200).length, names.length);
    assert.deepEqual([...new Set(answers)].sort(), [200, 503]);
    const records = await stage.records();
    assert.deepEqual(
      records.map(({ component, seq, phase, credentialId, lastOutcome }) => [
        component,
        seq,
        phase,
        credentialId,
        lastOutcome?.outcome,
      ]),
      records.map(({ component }) => [component, component === 'quick' ? 2 : 1, 'Idle', undefined, 'Done']),
    );
    for (const run of pendingRuns.values()) assert.equal(await write(run, 'late'), 403);
    for (const name of names) {
      const { outputs } = (await stage.get(name)).content.status;
      assert.deepEqual(outputs, { quick: { by: 'second' }, slow: { seq: 1 } });
    }
  });

  it('when the leader was paused past its Lease: it detects the lost leadership, and its actions have no effect', async () => {
    await left.begin();
    const [paused, other] = [await stage.get('e0'), await stage.get('e1')];
    const released = Promise.withResolvers<void>();
    let inFlight: ReconcileRequest | undefined;
    quick.script = async (run) => {
      inFlight = run;
      await released.promise;
      return { outcome: 'Done', outputs: { quick: { by: 'paused' } } };
    };
    await configure(paused, 1);
    await stage.until('the run to be in flight', () => inFlight !== undefined);
    assert.ok(inFlight);
    assert.equal(await reportTo(left, inFlight), 503, 'a replica that does not lead takes no report');

    right.signal('SIGSTOP');
    // Like a Service with an unready replica.
    leadTo(left);
    const seen = writesOfRight.length;
    // It must find both when it resumes: the answer to its call, and a change that requires a run.
    released.resolve();
    quick.script = ({ run }) => ({ outcome: 'Done', outputs: { quick: { by: `run ${run.seq}` } } });
    await configure(other, 1);
    await leaderIs('left');
    await stage.until('both have run', async () => (await at(paused)) === 'run 4' && (await at(other)) === 'run 3');
    assert.equal(await write(inFlight, 'paused'), 403);

    right.signal('SIGCONT');
    await until('the paused one to notice', async () => /no longer leading/.test(await right.log()), patience);
    await configure(paused, 2);
    await stage.until('the last change to be run', async () => (await at(paused)) === 'run 5');
    await allReady();
    assert.ok(right.running);
    assert.equal(await reportTo(right, inFlight), 503);
    assert.deepEqual(writesOfRight.slice(seen).filter(isLeaders), []);
    assert.deepEqual(
      [seqsOf(paused.ref.uid, 'quick'), seqsOf(other.ref.uid, 'quick')],
      [
        [1, 2, 3, 4, 5],
        [1, 2, 3],
      ],
    );
    assert.equal(await at(other), 'run 3');
    const ids = calls.map(({ run }) => run.id);
    assert.equal(new Set(ids).size, ids.length, 'no run is called twice');
  });

  async function startSlow(): Promise<ComponentServer> {
    const credentials = ownCredentials(await plane.kubeconfigFor('component', ['system:masters']));
    const serverAccount = `system:serviceaccount:${home}:drawbridge-inventory`;
    const callers = tokenReviewAuthenticator({ client: connect(credentials), component: 'slow', serverAccount });
    const callbackUrl = `http://127.0.0.1:${callbacks.port}`;
    const addresses = { apiUrl: plane.server, apiCa: credentials.tls.ca, callbackUrl };
    const transports = httpTransports({ ...addresses, callbackCa: undefined });
    return serveComponent({
      component: {
        name: 'slow',
        reconcile: async (run) => {
          if (run.request.operation === 'delete') return { outcome: 'Deleted' };
          calls.push(run.request);
          await run.heartbeat(60);
          await resume.promise;
          return { outcome: 'Done', outputs: { slow: { seq: run.request.run.seq } } };
        },
      },
      callers,
      addresses,
      transports: {
        ...transports,
        report: async (...report) => {
          const answer = await transports.report(...report);
          answers.push(answer.status);
          return answer;
        },
      },
      tls: undefined,
      host: '127.0.0.1',
      port: 0,
      clock,
      log: () => undefined,
    });
  }

  function leadTo(...servers: readonly InventoryServer[]): void {
    webhooks.setServers(...servers.map(({ ports }) => ports.webhooks));
    callbacks.setServers(...servers.map(({ ports }) => ports.callbacks));
  }

  const deleteLease = (): Promise<unknown> =>
    plane.kubectl(['delete', 'lease', '-n', home, lease, '--ignore-not-found']);

  const leaderIs = (identity: string): Promise<boolean> =>
    until(
      `${identity} to lead`,
      async () => {
        const { body } = await plane.probe(leaseUrl);
        return (body as { spec?: { holderIdentity?: string } }).spec?.holderIdentity === identity;
      },
      patience,
    );

  async function allReady(): Promise<void> {
    await stage.ready(...names).catch(async (error: Error) => {
      throw new Error(`${error.message}\nthe other:\n${(await right.log()).split('\n').slice(-30).join('\n')}`);
    });
  }

  const write = async (run: ReconcileRequest, by: string): Promise<number> =>
    (await patchStatus(run, { status: { outputs: { quick: { by } } } })).status;

  const configure = ({ ref }: Entry, size: number): Promise<Entry> =>
    stage.patch(ref.name, { spec: { components: { quick: { config: { size } } } } });

  const at = async ({ ref }: Entry): Promise<unknown> => {
    const { outputs } = (await stage.get(ref.name)).content.status;
    return (outputs['quick'] as { by?: unknown } | undefined)?.by;
  };

  const seqsOf = (entryUid: string, component: string): number[] =>
    calls.filter((call) => call.entry.id === entryUid && call.component === component).map(({ run }) => run.seq);

  const reportTo = (server: InventoryServer, run: ReconcileRequest): Promise<number> =>
    report(run, { outcome: 'Done' }, { url: `${server.callbackUrl}${new URL(run.callback).pathname}` });

  /** Excludes the Lease, the heads of its own audit journal, and access reviews. */
  const isLeaders = (call: string): boolean => !/\/(leases|configmaps|tokenreviews|subjectaccessreviews)/.test(call);
});
