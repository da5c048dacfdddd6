import assert from 'node:assert/strict';
import type { RemoteWatch } from '../../../../src/api/inventory/component-reconciler.ts';
import { entryUidLabel, kubeconfigSecretName } from '../../../../src/api/inventory/names.ts';
import type { Resource } from '../../../../src/api/object.ts';
import { secrets } from '../../../../src/api/resources.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import { RemoteHub } from '../../../../src/inventory/remote/hub.ts';
import { maxObjects } from '../../../../src/inventory/remote/watch-spec.ts';
import { describe as describeError } from '../../../../src/kit/errors.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import type { InformerStore } from '../../../../src/kube/informer-store.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../../src/kube/store.ts';
import { createMetrics } from '../../../../src/observe/metrics.ts';
import { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import { kubeconfigsAreRead, simulatedKubeconfig } from '../../../support/inventory/kubeconfigs.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const services: Resource = {
  group: 'example.org',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
};
const inManaged = (fields: RemoteWatch['fields'] = 'spec'): RemoteWatch => ({
  cluster: 'managed',
  group: 'example.org',
  version: 'v1',
  resource: 'services',
  fields,
});
const inManagement: RemoteWatch = { ...inManaged('status'), cluster: 'management' };

/** A cluster whose watch events a test controls. */
class ControlledCluster extends MemoryCluster {
  readonly stores = new Set<InformerStore<Projected>>();
  closed = 0;

  /** Failures as a reflector reports them. */
  override deliver = (watch: object, event: () => void): void => {
    try {
      event();
    } catch (error) {
      for (const store of this.stores) if (store === watch) store.failed(describeError(error));
    }
  };

  override watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    const handle = super.watch(spec);
    const store = handle.store as unknown as InformerStore<Projected>;
    this.stores.add(store);
    store.alive();
    return { ...handle, release: () => [this.stores.delete(store), handle.release()] };
  }

  confirmWatch(): void {
    for (const store of this.stores) store.alive();
  }

  fail(reason: string): void {
    for (const store of this.stores) store.failed(reason);
  }

  override close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }
}

class Stage {
  readonly clock = new SimulatedClock();
  readonly management = new ControlledCluster(this.clock);
  readonly managed = new Map<string, ControlledCluster>();
  readonly metrics = createMetrics();
  readonly events: string[] = [];
  readonly health: string[] = [];
  opened = 0;
  readonly hub: RemoteHub;

  constructor(maxClusters = 500) {
    this.hub = new RemoteHub({
      cluster: this.management,
      client: this.management.client,
      connect: ({ server }) => {
        this.opened += 1;
        return this.cluster(server);
      },
      clock: this.clock,
      random: () => 0.5,
      metrics: this.metrics,
      maxClusters,
    });
    this.hub.subscribe(({ entryUid, component, detail }) => this.events.push(`${entryUid} ${component} ${detail}`));
    this.hub.onHealth((uid) => this.health.push(`${uid} ${this.hub.problem(uid) ?? 'good'}`));
  }

  cluster(server = 'https://managed.example.org'): ControlledCluster {
    const found = this.managed.get(server) ?? new ControlledCluster(this.clock);
    this.managed.set(server, found);
    return found;
  }

  kubeconfig(uid: string, text = simulatedKubeconfig(uid)): void {
    const data = { config: Buffer.from(text).toString('base64') };
    const metadata = { namespace: 'fleet', name: kubeconfigSecretName(uid) };
    this.management.put(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  }

  async want(uid: string, watches: RemoteWatch[], version: string | null = 'v1', component = 'proxy'): Promise<void> {
    const outputs = version === null ? {} : { kubeconfig: { version } };
    const entry = {
      ref: { namespace: 'fleet', name: uid, uid },
      content: { spec: {}, status: { outputs } },
    } as unknown as Entry;
    this.hub.setWatches(entry, [{ component, watches }]);
    await this.settle();
  }

  /** Entries `one` and `two` watch a cluster each. */
  async watchTwo(): Promise<void> {
    for (const uid of ['one', 'two']) {
      this.kubeconfig(uid, simulatedKubeconfig(uid).replace('managed.example.org', `${uid}.example.org`));
      await this.want(uid, [inManaged()]);
      await this.advance(1_000);
    }
  }

  settle(): Promise<void> {
    return kubeconfigsAreRead();
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await this.settle();
  }

  service(
    cluster: MemoryCluster,
    name: string,
    rest: Readonly<Record<string, unknown>> = {},
    labels = {},
    namespace = cluster === this.management ? 'fleet' : 'shop',
  ): void {
    cluster.put(services, {
      apiVersion: 'example.org/v1',
      kind: 'Service',
      metadata: { namespace, name, labels },
      ...rest,
    });
  }

  /** Events since the last call. */
  takeEvents(): string[] {
    return this.events.splice(0);
  }
}

/** Entry `one`, whose component watches its cluster; events of the first list are taken. */
async function watching(): Promise<Stage> {
  const stage = new Stage();
  stage.kubeconfig('one');
  await stage.want('one', [inManaged()]);
  stage.takeEvents();
  return stage;
}

const changed = 'one proxy managed/services.example.org';

describe('the remote hub', () => {
  before(kubeconfigsAreRead);

  it('reports once after the first list of a cluster, then each change', async () => {
    const stage = new Stage();
    stage.kubeconfig('one');
    stage.service(stage.cluster(), 'a');
    await stage.want('one', [inManaged()]);
    assert.deepEqual(stage.takeEvents(), [changed]);
    stage.service(stage.cluster(), 'b');
    assert.deepEqual(stage.takeEvents(), [changed]);
    stage.cluster().drop(services, { namespace: 'shop', name: 'b' });
    assert.deepEqual(stage.takeEvents(), [changed]);
  });

  for (const [fields, touching, quiet] of [
    ['spec', { spec: { size: 2 } }, { spec: { size: 1 }, status: { phase: 'up' } }],
    ['status', { spec: { size: 1 }, status: { phase: 'up' } }, { spec: { size: 2 } }],
    ['metadata', { metadata: { namespace: 'shop', name: 'a', labels: { x: 'y' } } }, { spec: { size: 2 } }],
  ] as const) {
    it(`reports only changes of ${fields} if these are selected`, async () => {
      const stage = new Stage();
      stage.kubeconfig('one');
      stage.service(stage.cluster(), 'a', { spec: { size: 1 } });
      await stage.want('one', [inManaged(fields)]);
      stage.takeEvents();
      stage.service(stage.cluster(), 'a', quiet);
      assert.deepEqual(stage.takeEvents(), []);
      stage.service(stage.cluster(), 'a', touching);
      assert.deepEqual(stage.takeEvents(), [changed]);
    });
  }

  it('reports only for the entry of the cluster, and only to components that watch it', async () => {
    const stage = new Stage();
    await stage.watchTwo();
    stage.takeEvents();
    stage.service(stage.cluster('https://two.example.org'), 'a');
    assert.deepEqual(stage.takeEvents(), ['two proxy managed/services.example.org']);
  });

  it('connects only with a kubeconfig, and does not reconnect without a change', async () => {
    const stage = new Stage();
    await stage.want('one', [inManaged()], null);
    assert.deepEqual([stage.opened, stage.hub.problem('one')], [0, undefined]);
    stage.kubeconfig('one');
    for (let i = 0; i < 3; i++) await stage.want('one', [inManaged()]);
    assert.equal(stage.opened, 1);
  });

  it('switches to a new kubeconfig without reporting unchanged objects', async () => {
    const stage = new Stage();
    stage.kubeconfig('one');
    stage.service(stage.cluster(), 'a');
    await stage.want('one', [inManaged()]);
    stage.takeEvents();
    await stage.want('one', [inManaged()], 'v2');
    assert.deepEqual([stage.opened, stage.cluster().closed, stage.takeEvents()], [2, 1, []]);
    stage.service(stage.cluster(), 'b');
    assert.deepEqual(stage.takeEvents(), [changed]);
  });

  it('reports objects deleted between two kubeconfigs', async () => {
    const stage = new Stage();
    stage.kubeconfig('one');
    for (const name of ['a', 'b']) stage.service(stage.cluster(), name);
    await stage.want('one', [inManaged()]);
    stage.takeEvents();
    stage.kubeconfig('one', simulatedKubeconfig('one').replace('managed.example.org', 'moved.example.org'));
    await stage.want('one', [inManaged()], 'v2');
    assert.deepEqual(stage.takeEvents(), [changed]);
  });

  it('retries a failed connection, and reports the reason meanwhile', async () => {
    const stage = new Stage();
    await stage.want('one', [inManaged()]);
    await stage.advance(6_000);
    assert.match(stage.hub.problem('one') ?? '', /not found/);
    stage.kubeconfig('one');
    await stage.advance(60_000);
    stage.cluster().confirmWatch();
    await stage.advance(6_000);
    assert.equal(stage.hub.problem('one'), undefined);
    assert.deepEqual(stage.health.length, 2);
  });

  it('rejects kubeconfigs that would run programs', async () => {
    const stage = new Stage();
    stage.kubeconfig('one', simulatedKubeconfig('one', { exec: { command: 'sh' } }));
    await stage.want('one', [inManaged()]);
    await stage.advance(6_000);
    assert.match(stage.hub.problem('one') ?? '', /exec of the user is not allowed/);
    assert.equal(stage.opened, 0);
  });

  it('reports a silent cluster within 100 s, and its recovery', async () => {
    const stage = await watching();
    for (let i = 0; i < 6; i++) {
      await stage.advance(30_000);
      stage.cluster().confirmWatch();
    }
    assert.deepEqual(stage.health, []);
    await stage.advance(100_000);
    assert.match(stage.health.join(), /^one the watch of services received nothing for over 90 s;/);
    assert.match(await stage.metrics.expose(), /^drawbridge_inventory_remote_watch_unhealthy 1$/m);
    stage.cluster().confirmWatch();
    await stage.advance(6_000);
    assert.equal(stage.health.at(-1), 'one good');
  });

  it('reports soon why a cluster rejects watches, unless the interruption is short', async () => {
    const stage = new Stage();
    await stage.watchTwo();
    const fail = (): void => stage.cluster('https://one.example.org').fail('connect ECONNREFUSED');
    fail();
    await stage.advance(9_000);
    stage.cluster('https://one.example.org').confirmWatch();
    fail();
    await stage.advance(9_000);
    assert.deepEqual(stage.health, []);
    fail();
    await stage.advance(6_000);
    assert.deepEqual(stage.health, ['one the watch of services fails: connect ECONNREFUSED']);
    stage.cluster('https://one.example.org').confirmWatch();
    await stage.advance(6_000);
    assert.deepEqual(stage.health.slice(1), ['one good']);
  });

  it('evicts the cluster with the oldest change at the maximum number of clusters, and reopens it later', async () => {
    const stage = new Stage(2);
    await stage.watchTwo();
    stage.service(stage.cluster('https://one.example.org'), 'a');
    stage.kubeconfig('three');
    await stage.want('three', [inManaged()]);
    assert.match(stage.hub.problem('two') ?? '', /because it watches at most 2 clusters at a time/);
    assert.equal(stage.hub.problem('one'), undefined);
    stage.hub.forget('three');
    await stage.settle();
    assert.equal(stage.hub.problem('two'), undefined);
    assert.equal(stage.opened, 4);
  });

  it('shares one watch of the management cluster and assigns objects by label', async () => {
    const stage = new Stage();
    for (const uid of ['one', 'two']) await stage.want(uid, [inManagement], null, 'network');
    assert.equal(stage.management.watches, 1);
    stage.service(stage.management, 'a', {}, { [entryUidLabel]: 'two' });
    assert.deepEqual(stage.takeEvents(), ['two network management/services.example.org']);
    stage.service(stage.management, 'a', { status: { phase: 'up' } }, { [entryUidLabel]: 'two' });
    assert.deepEqual(stage.takeEvents(), ['two network management/services.example.org']);
    stage.service(stage.management, 'nobody');
    stage.hub.forget('one');
    assert.equal(stage.management.watches, 1);
    stage.hub.forget('two');
    assert.equal(stage.management.watches, 0);
    assert.deepEqual(stage.takeEvents(), []);
  });

  it('reports only objects in the namespace of the entry, unless the watch names another one', async () => {
    const stage = new Stage();
    await stage.want('one', [inManagement], null, 'network');
    stage.service(stage.management, 'a', {}, { [entryUidLabel]: 'one' }, 'stranger');
    assert.deepEqual(stage.takeEvents(), []);
    stage.service(stage.management, 'a', {}, { [entryUidLabel]: 'one' });
    assert.deepEqual(stage.takeEvents(), ['one network management/services.example.org']);
    await stage.want('two', [{ ...inManagement, namespace: 'cloud' }], null, 'network');
    stage.service(stage.management, 'b', {}, { [entryUidLabel]: 'two' }, 'cloud');
    assert.deepEqual(stage.takeEvents(), ['two network management/services.example.org']);
  });

  it('watches another cluster in place of one that no longer has a kubeconfig', async () => {
    const stage = new Stage(1);
    await stage.watchTwo();
    assert.match(stage.hub.problem('one') ?? '', /because it watches at most 1 clusters at a time/);
    await stage.want('two', [inManaged()], null);
    await stage.settle();
    assert.deepEqual([stage.hub.problem('one'), stage.opened], [undefined, 3]);
  });

  it('reports a watch with too many objects, and starts over with the next kubeconfig', async () => {
    const stage = await watching();
    for (let i = 0; i <= maxObjects; i++) stage.service(stage.cluster(), `s${i}`);
    await stage.advance(16_000);
    const tooMany = `the watch of services fails: the server has more than ${maxObjects} services`;
    assert.equal(stage.hub.problem('one'), tooMany);
    for (let i = 0; i < 9; i++) stage.cluster().drop(services, { namespace: 'shop', name: `s${i}` });
    stage.takeEvents();
    await stage.want('one', [inManaged()], 'v2');
    await stage.advance(6_000);
    assert.deepEqual([stage.hub.problem('one'), stage.takeEvents()], [undefined, [changed]]);
  });

  it('drops objects that no API server would return', async () => {
    const stage = await watching();
    stage.service(stage.cluster(), 'x'.repeat(2_000));
    assert.deepEqual(stage.takeEvents(), []);
  });

  it('keeps no state of a deleted entry', async () => {
    const stage = await watching();
    stage.hub.forget('one');
    await stage.settle();
    stage.service(stage.cluster(), 'late');
    assert.deepEqual([stage.cluster().closed, stage.cluster().watches, stage.takeEvents()], [1, 0, []]);
  });

  it('releases everything when it is closed', async () => {
    const stage = new Stage();
    stage.kubeconfig('one');
    await stage.want('one', [inManaged(), inManagement]);
    await stage.hub.close();
    assert.deepEqual([stage.management.watches, stage.cluster().watches, stage.clock.pendingTimers], [0, 0, 0]);
  });

  it('isolates entries from a cluster that answers errors', async () => {
    const stage = new Stage();
    stage.management.fault = ({ verb, name }) => {
      if (verb === 'get' && name.endsWith('kc-one')) throw new ApiError(500, 'InternalError', 'broken');
    };
    for (const uid of ['one', 'two']) {
      stage.kubeconfig(uid);
      await stage.want(uid, [inManaged()]);
    }
    await stage.advance(6_000);
    assert.match(stage.hub.problem('one') ?? '', /broken/);
    assert.equal(stage.hub.problem('two'), undefined);
    assert.deepEqual(stage.takeEvents(), ['two proxy managed/services.example.org']);
  });
});
