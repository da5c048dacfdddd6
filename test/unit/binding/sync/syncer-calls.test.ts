import assert from 'node:assert/strict';
import { apiServiceNamespaces } from '../../../../src/api/binding/names.ts';
import { own } from '../../../../src/kit/json-value.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../../src/kube/store.ts';
import type { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import {
  clusterNamespace,
  litresOf,
  openStage,
  type SyncStage,
  type SyncStageOptions,
  stageInSync,
  tea,
  teaCopy,
} from '../../../support/binding/sync-stage.ts';
import { pluck } from '../../../support/pluck.ts';

describe('a syncer whose calls or lists fail', () => {
  let stage: SyncStage;
  afterEach(() => stage.kill());

  const open = (options?: SyncStageOptions): SyncStage => {
    stage = openStage(options);
    return stage;
  };
  const inStep = async (options?: SyncStageOptions): Promise<void> => {
    stage = await stageInSync(options);
  };

  describe('when calls fail', () => {
    it('continues with possible writes, and keeps the problem of the failing one', async () => {
      await inStep();
      await stage.kill();
      let changes = 0;
      const syncer = stage.start('sync', { onChange: () => changes++ });
      await stage.clock.settle();
      changes = 0;
      stage.provider.fault = ({ verb }) => {
        if (verb === 'patch') throw new ApiError(422, 'Invalid', 'spec.litres: too many');
      };
      stage.put(tea, { ...stage.object(tea), spec: { litres: 99 } });
      stage.report(teaCopy, { hot: true });
      await stage.settle();
      assert.deepEqual(stage.object(tea)?.status, { hot: true });
      assert.match(syncer.problems().join(), /the provider rejected the request: spec.litres: too many/);
      assert.deepEqual([changes, stage.events.length], [1, 1], 'told once');
      stage.put(tea, { ...stage.object(tea), spec: { litres: 2 } });
      await stage.settle();
      assert.deepEqual(syncer.problems(), []);
    });

    it('writes no status to an object that has replaced the one that the status is for', async () => {
      await inStep();
      stage.consumer.fault = ({ subresource }) => {
        if (subresource !== 'status') return;
        stage.consumer.fault = () => {};
        stage.consumer.drop(stage.kettles.consumer, tea);
        stage.put(tea);
      };
      const written: [planned: unknown, uid: unknown][] = [];
      stage.consumer.answered = ({ subresource, body }) => {
        if (subresource === 'status')
          written.push([own(own(body, 'metadata'), 'uid'), stage.object(tea)?.metadata.uid]);
      };
      stage.report(teaCopy, { hot: true });
      await stage.settle();
      assert.equal(written.length, 1);
      for (const [planned, uid] of written) assert.equal(planned, uid);
      assert.deepEqual(stage.object(tea)?.status, { hot: true });
    });

    it('backs off from a write that the provider changes, and reports it once', async () => {
      await inStep();
      stage.provider.admit = ({ plural }, object) =>
        plural === 'kettles' ? { ...object, spec: { litres: 2, added: 'always' } } : object;
      stage.putCopy(teaCopy, stage.copy(teaCopy));
      await stage.settle();
      for (let i = 0; i < 200; i++) {
        stage.report(teaCopy, { beat: i });
        await stage.settle(60_000);
      }
      assert.ok(stage.provider.writes.length < 20, `${stage.provider.writes.length} writes in 200 minutes`);
      assert.equal(stage.events.length, 1);
      assert.match(stage.events[0]?.note ?? '', /the provider accepts writes to the copy but stores something else/);
    });

    it('counts repairs, but not updates after a change in the consumer', async () => {
      const repairs = async (): Promise<number> => {
        const metrics = await stage.metrics.expose();
        return Number(
          /^drawbridge_binding_repairs_total\{resource="kettles.kitchen.example"\} (\d+)$/m.exec(metrics)?.[1] ?? 0,
        );
      };
      open();
      stage.start();
      stage.put(tea);
      await stage.settle();
      stage.put(tea, { ...stage.object(tea), spec: { litres: 3 } });
      stage.report(teaCopy, { hot: true });
      await stage.settle();
      assert.equal(await repairs(), 0);
      stage.putCopy(teaCopy, { ...stage.copy(teaCopy), spec: { litres: 9 } });
      await stage.settle();
      assert.deepEqual([litresOf(stage.copy(teaCopy)), await repairs()], [3, 1]);
      stage.provider.drop(stage.kettles.provider, teaCopy);
      await stage.settle();
      assert.deepEqual([litresOf(stage.copy(teaCopy)), await repairs()], [3, 2]);
      stage.consumer.drop(stage.kettles.consumer, tea);
      stage.put(tea);
      await stage.settle();
      assert.deepEqual([litresOf(stage.copy(teaCopy)), await repairs()], [2, 2]);
    });

    it('writes a status that is kept in the end, as when an API server serves the new schema late', async () => {
      await inStep();
      stage.consumer.admit = (_, { status: __, ...object }) => object as never;
      stage.report(teaCopy, { hot: true });
      await stage.settle(1_000);
      stage.consumer.admit = (_, object) => object;
      await stage.settle(2_000);
      assert.deepEqual(stage.object(tea)?.status, { hot: true });
      assert.deepEqual(stage.events, []);
    });

    it('writes a status at once after a change of the schema in the consumer', async () => {
      await inStep();
      stage.consumer.admit = ({ plural }, { status, ...object }) =>
        plural === 'kettles' ? (object as never) : { ...object, status };
      stage.report(teaCopy, { hot: true });
      await stage.settle(3_600_000);
      stage.consumer.admit = (_, object) => object;
      stage.establish(true, [{ name: 'v1' }]);
      await stage.settle(1_000);
      assert.deepEqual(stage.object(tea)?.status, { hot: true });
    });

    it('creates no copy for an object that only a slow watch still shows', async () => {
      await inStep();
      const held: (() => void)[] = [];
      stage.put({ namespace: 'team-a', name: 'milk' });
      stage.consumer.deliver = (_, event) => void held.push(event);
      stage.consumer.drop(stage.kettles.consumer, { namespace: 'team-a', name: 'milk' });
      await stage.settle();
      assert.deepEqual(pluck(stage.provider.calls, 'verb'), ['create', 'delete']);
      for (const event of held) event();
      await stage.settle();
      assert.equal(stage.provider.calls.length, 2);
    });

    it('writes nothing twice', async () => {
      await inStep();
      await stage.kill();
      const syncer = stage.start();
      await stage.settle();
      syncer.resync();
      await stage.settle(3_600_000);
      assert.deepEqual([stage.consumer.writes, stage.provider.writes], [[], []]);
      assert.equal(stage.consumer.calls.length + stage.provider.calls.length, 0);
    });
  });

  /** Keeps the objects of the kind unlisted in a cluster. Returns a function that lists them. */
  function unlist(cluster: MemoryCluster, cause?: string): () => void {
    const watch = cluster.watch.bind(cluster);
    const stores: { list(): void }[] = [];
    cluster.watch = <T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> => {
      if (spec.resource.plural !== 'kettles') return watch(spec);
      const store = new InformerStore(spec, stage.clock, silentLog);
      if (cause !== undefined) store.failed(cause);
      stores.push({ list: () => store.beginList().commit() });
      return { store, release: () => store.close() };
    };
    return () => stores.forEach((store) => void store.list());
  }

  it('reports that this cluster does not list its objects, also after a restart', async () => {
    open();
    unlist(stage.consumer, '403: kettles is forbidden');
    let changes = 0;
    const syncer = stage.start('sync', { onChange: () => changes++ });
    await stage.settle(20_000);
    assert.deepEqual([syncer.served(), syncer.problems(), changes], [false, [], 0]);
    await stage.settle(20_000);
    const says =
      /objects in this cluster yet \(403: kettles is forbidden\); it needs permission to list and watch them/;
    assert.match(syncer.problems().join(), says);
    assert.equal(changes, 1);
  });

  it('reports a CustomResourceDefinition that is not established', async () => {
    open();
    stage.establish(false);
    const syncer = stage.start();
    await stage.settle(40_000);
    assert.match(syncer.problems().join(), /this cluster yet; .*kubectl describe crd kettles\.kitchen\.example$/);
  });

  it('syncs a kind that the API server serves before its CustomResourceDefinition is established', async () => {
    open();
    stage.establish(false, [], true);
    const syncer = stage.start();
    await stage.settle();
    assert.equal(syncer.served(), true);
    stage.establish();
    await stage.settle();
    assert.equal(syncer.served(), true);
    stage.establish(false, [], true);
    await stage.settle();
    assert.equal(syncer.served(), false, 'the definition was established, and is no longer');
  });

  for (const informerScope of ['Namespaced', 'Cluster'] as const) {
    it(`notifies its owner when a late list of the provider is complete: informerScope ${informerScope}`, async () => {
      open({ informerScope });
      const list = unlist(stage.provider);
      const reported: string[] = [];
      const syncer = stage.start('sync', { onChange: () => void reported.push(syncer.problems().join()) });
      await stage.settle(40_000);
      assert.match(reported.at(-1) ?? '', /the konnector has not listed the copies in the provider yet/);
      list();
      await stage.settle();
      assert.equal(reported.at(-1), '');
    });
  }

  it('does not reconcile the objects of other namespaces when a service namespace is removed', async () => {
    await inStep();
    const reconciles = async () =>
      (await stage.metrics.expose()).match(/^controller_runtime_reconcile_total\{controller="sync.* \d+$/gm);
    stage.answerNamespace('team-b');
    await stage.settle();
    const before = await reconciles();
    stage.provider.drop(apiServiceNamespaces, { namespace: clusterNamespace, name: 'team-b' });
    await stage.settle();
    assert.ok(before);
    assert.deepEqual(await reconciles(), before);
  });

  it('notifies its owner when a drain learns that the provider has no copies', async () => {
    open();
    const list = unlist(stage.provider);
    let changes = 0;
    const syncer = stage.start('drain', { onChange: () => changes++ });
    await stage.settle(1_000);
    assert.equal(syncer.remaining(), Number.POSITIVE_INFINITY);
    const before = changes;
    list();
    await stage.settle(1_000);
    assert.equal(syncer.remaining(), 0);
    assert.ok(changes > before);
  });
});
