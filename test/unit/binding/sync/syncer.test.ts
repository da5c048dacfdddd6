import assert from 'node:assert/strict';
import {
  apiServiceNamespaces,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../../src/kube/store.ts';
import type { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import {
  clusterNamespace,
  otherKonnectorAnnotations,
  ownAnnotations,
  SyncStage,
  type SyncStageOptions,
} from '../../../support/binding/sync-stage.ts';

const tea = { namespace: 'team-a', name: 'tea' };
const teaCopy = { namespace: 'kb-acme-team-a', name: 'tea' };

describe('syncer', () => {
  let stage: SyncStage;
  afterEach(() => stage.kill());

  function open(options: SyncStageOptions = {}): SyncStage {
    stage = new SyncStage(options);
    if (options.scope !== 'Cluster') stage.answerNamespace('team-a');
    return stage;
  }

  /** Puts one object and waits until it is in sync. */
  async function inStep(options: SyncStageOptions = {}): Promise<void> {
    open(options);
    stage.start();
    stage.put(tea);
    await stage.settle();
    assert.ok(stage.copy(teaCopy));
    stage.consumer.calls.length = 0;
    stage.provider.calls.length = 0;
  }

  const litres = (object: { spec?: unknown } | undefined): unknown => (object?.spec as { litres?: unknown })?.litres;
  const heldKeys = (count: number): { namespace: string; name: string }[] =>
    Array.from({ length: count }, (_, i) => ({ namespace: 'team-a', name: `tea-${i}` }));

  describe('in the life of an object', () => {
    it('creates the copy, adds the finalizer, and copies the status, without reads', async () => {
      open();
      stage.start();
      await stage.settle();
      stage.put(tea, { metadata: { name: 'tea', labels: { app: 'tea' } } });
      await stage.settle();
      assert.deepEqual(
        stage.provider.calls.map(({ verb, fieldManager }) => [verb, fieldManager]),
        [['create', 'kube-bind.io']],
      );
      assert.deepEqual(stage.consumer.writes, ['patch kettles team-a/tea']);
      const { metadata } = stage.object(tea) ?? {};
      assert.deepEqual(metadata?.finalizers, [syncerFinalizer]);
      assert.deepEqual(metadata?.annotations, {
        [providerNamespaceAnnotation]: 'kb-acme-team-a',
        [providerUidAnnotation]: stage.copy(teaCopy)?.metadata.uid,
      });
      assert.deepEqual(stage.copy(teaCopy)?.metadata.annotations, ownAnnotations('team-a/tea', metadata?.uid ?? ''));
      assert.deepEqual(stage.copy(teaCopy)?.metadata.labels, { app: 'tea' });

      stage.report(teaCopy, { hot: true });
      await stage.settle();
      assert.deepEqual(stage.consumer.writes, ['patch kettles team-a/tea', 'patch kettles/status team-a/tea']);
      assert.deepEqual(stage.object(tea)?.status, { hot: true });

      await stage.remove(tea);
      await stage.settle();
      assert.deepEqual([stage.object(tea), stage.copy(teaCopy)], [undefined, undefined]);
      assert.deepEqual(
        stage.provider.calls.map(({ verb }) => verb),
        ['create', 'delete'],
      );
      assert.equal(
        stage.consumer.calls.some(({ verb }) => verb === 'get' || verb === 'list'),
        false,
      );
    });

    it('removes fields of the copy', async () => {
      await inStep();
      stage.put(tea, { ...stage.object(tea), spec: { litres: 3, colour: 'red' } });
      await stage.settle();
      stage.put(tea, { ...stage.object(tea), spec: { litres: 3 } });
      await stage.settle();
      assert.deepEqual(stage.copy(teaCopy)?.spec, { litres: 3 });
      assert.deepEqual(stage.provider.writes, ['patch kettles kb-acme-team-a/tea', 'patch kettles kb-acme-team-a/tea']);
    });

    it('makes at most five writes for a hundred changes of a status in a second, including the last', async () => {
      await inStep();
      for (let i = 1; i <= 100; i++) {
        stage.report(teaCopy, { beat: i });
        await stage.clock.advance(10);
      }
      await stage.settle();
      assert.deepEqual(stage.object(tea)?.status, { beat: 100 });
      assert.ok(stage.consumer.writes.length <= 5, `${stage.consumer.writes.length}`);
    });

    it('requests a namespace once, however many objects wait for it', async () => {
      stage = new SyncStage();
      stage.start();
      for (const { name } of heldKeys(50)) stage.put({ namespace: 'team-n', name });
      await stage.settle();
      assert.deepEqual(stage.provider.writes, ['create apiservicenamespaces kb-acme/team-n']);
      const asked = stage.provider.find(apiServiceNamespaces, { namespace: clusterNamespace, name: 'team-n' });
      assert.equal(asked?.metadata.ownerReferences, undefined);
      stage.answerNamespace('team-n');
      await stage.settle();
      assert.equal(stage.provider.list(stage.kettles.provider).length, 50);
      assert.equal(stage.consumer.writes.length, 50);
    });

    it('follows created and deleted namespaces', async () => {
      await inStep();
      const watches = stage.provider.watches;
      stage.answerNamespace('team-b');
      assert.equal(stage.provider.watches, watches + 1);
      stage.provider.drop(apiServiceNamespaces, { namespace: clusterNamespace, name: 'team-b' });
      assert.equal(stage.provider.watches, watches);
    });

    for (const [isolation, copyName] of [
      ['Prefixed', { name: 'kb-acme-tea' }],
      ['Namespaced', { namespace: 'kb-acme', name: 'tea' }],
      ['None', { name: 'tea' }],
    ] as const) {
      it(`does the same for cluster-scoped kinds with isolation ${isolation}`, async () => {
        open({ scope: 'Cluster', isolation });
        stage.start();
        stage.put({ name: 'tea' });
        await stage.settle();
        const copy = stage.copy(copyName);
        assert.deepEqual(
          copy?.metadata.annotations,
          ownAnnotations('tea', stage.object({ name: 'tea' })?.metadata.uid ?? ''),
        );
        const owned = (copy?.metadata.ownerReferences ?? []).map(({ kind, uid, controller }) => [
          kind,
          uid,
          controller,
        ]);
        assert.deepEqual(owned, isolation === 'Namespaced' ? [] : [['Namespace', 'uid-of-kb-acme', undefined]]);
        stage.report(copyName, { hot: true });
        await stage.settle();
        assert.deepEqual(stage.object({ name: 'tea' })?.status, { hot: true });
        await stage.remove({ name: 'tea' });
        await stage.settle();
        assert.deepEqual([stage.object({ name: 'tea' }), stage.copy(copyName)], [undefined, undefined]);
      });
    }

    it('reports a name that is too long, and syncs the other objects', async () => {
      open({ scope: 'Cluster', isolation: 'Prefixed' });
      const syncer = stage.start();
      stage.put({ name: 'x'.repeat(250) });
      stage.put({ name: 'tea' });
      await stage.settle();
      assert.ok(stage.copy({ name: 'kb-acme-tea' }));
      assert.match(syncer.problems().join(), /its name has 250 characters; the provider adds the prefix .*at most 245/);
      assert.deepEqual(
        stage.events.map(({ reason }) => reason),
        ['NotSynced'],
      );
    });
  });

  describe('when an object is deleted', () => {
    it('removes the finalizer only after the copy is deleted', async () => {
      await inStep();
      stage.putCopy(teaCopy, {
        ...stage.copy(teaCopy),
        metadata: { ...stage.copy(teaCopy)?.metadata, name: 'tea', finalizers: ['acme/slow'] },
      });
      await stage.remove(tea);
      await stage.settle(60_000);
      assert.deepEqual(stage.object(tea)?.metadata.finalizers, [syncerFinalizer]);
      assert.equal(stage.provider.writes.length, 1);
      stage.provider.drop(stage.kettles.provider, teaCopy);
      await stage.settle();
      assert.equal(stage.object(tea), undefined);
    });

    it('deletes the copy once, however late the watch shows it', async () => {
      await inStep();
      const held: (() => void)[] = [];
      stage.provider.deliver = (_, event) => void held.push(event);
      await stage.remove(tea);
      stage.put(tea, { ...stage.object(tea), spec: { litres: 4 } });
      await stage.settle();
      assert.equal(stage.provider.writes.length, 1);
      assert.ok(stage.object(tea));
      for (const event of held) event();
      await stage.settle();
      assert.equal(stage.object(tea), undefined);
    });

    it('finds the copy at its recorded place if its namespace is no longer known', async () => {
      await inStep();
      stage.provider.drop(apiServiceNamespaces, { namespace: clusterNamespace, name: 'team-a' });
      await stage.remove(tea);
      await stage.settle(20_000);
      assert.deepEqual([stage.object(tea), stage.copy(teaCopy)], [undefined, undefined]);
    });

    it('deletes the copy if the object was deleted before it had the finalizer', async () => {
      open();
      stage.start();
      stage.consumer.fault = ({ verb }) => {
        if (verb === 'patch') stage.consumer.drop(stage.kettles.consumer, tea);
      };
      stage.put(tea);
      await stage.settle();
      assert.deepEqual([stage.object(tea), stage.copy(teaCopy)], [undefined, undefined]);
    });

    it('deletes any number of copies after observed deletions of their objects', async () => {
      await inStep();
      for (const key of heldKeys(30)) stage.put(key);
      await stage.settle();
      for (const key of heldKeys(30)) stage.consumer.drop(stage.kettles.consumer, key);
      await stage.settle();
      assert.deepEqual(
        stage.provider.list(stage.kettles.provider).map(({ metadata }) => metadata.name),
        ['tea'],
      );
    });
  });

  describe('with objects of other owners', () => {
    it('changes nothing, and reports whose name is taken', async () => {
      open({ scope: 'Cluster', isolation: 'None' });
      const other = { ...otherKonnectorAnnotations('', 'x-1'), 'kube-bind.io/cluster-namespace': 'kb-other' };
      stage.putCopy({ name: 'tea' }, { metadata: { name: 'tea', annotations: other }, spec: { litres: 9 } });
      stage.putCopy({ name: 'coffee' }, { metadata: { name: 'coffee', annotations: other } });
      stage.putCopy({ name: 'milk' });
      const syncer = stage.start();
      stage.put({ name: 'tea' });
      await stage.settle(60_000);
      assert.deepEqual([stage.provider.writes, stage.consumer.writes], [[], []]);
      assert.deepEqual(syncer.problems().length, 1);
      assert.match(
        syncer.problems().join(),
        /the provider already has an object "[^"]*tea" that is not a copy for this cluster/,
      );
      stage.provider.drop(stage.kettles.provider, { name: 'tea' });
      await stage.settle();
      assert.equal(litres(stage.copy({ name: 'tea' })), 2);
      assert.deepEqual(syncer.problems(), []);
    });

    it('adopts a copy that another konnector created', async () => {
      open();
      const { metadata } = stage.put(tea, { metadata: { name: 'tea', finalizers: [syncerFinalizer] } });
      const { 'kube-bind.io/consumer-uid': _, ...older } = otherKonnectorAnnotations('team-a', metadata.uid);
      stage.putCopy(teaCopy, { metadata: { name: 'tea', annotations: older }, spec: { litres: 1, old: true } });
      const { metadata: before } = stage.copy(teaCopy) ?? {};
      stage.start();
      await stage.settle();
      assert.equal(stage.copy(teaCopy)?.metadata.uid, before?.uid);
      assert.deepEqual(stage.copy(teaCopy)?.metadata.annotations, ownAnnotations('team-a/tea', metadata.uid));
      assert.deepEqual(stage.copy(teaCopy)?.spec, { litres: 2 });
      assert.deepEqual(stage.provider.writes, ['patch kettles kb-acme-team-a/tea']);
    });

    it('keeps the copy of an object that was created again under its name', async () => {
      await inStep();
      await stage.kill();
      stage.consumer.drop(stage.kettles.consumer, tea);
      const { metadata } = stage.put(tea);
      stage.start();
      await stage.settle();
      assert.deepEqual(stage.copy(teaCopy)?.metadata.annotations, ownAnnotations('team-a/tea', metadata.uid));
      assert.deepEqual(stage.provider.writes, ['patch kettles kb-acme-team-a/tea']);
    });
  });

  describe('with copies whose objects vanished unobserved', () => {
    async function vanished(count: number): Promise<void> {
      open();
      stage.start();
      for (const key of heldKeys(count)) stage.put(key);
      await stage.settle();
      await stage.kill();
      for (const key of heldKeys(count)) stage.consumer.drop(stage.kettles.consumer, key);
      stage.consumer.calls.length = 0;
      stage.provider.calls.length = 0;
    }

    it('deletes a few, each after a read', async () => {
      await vanished(19);
      stage.start();
      await stage.settle();
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
      assert.equal(stage.consumer.calls.filter(({ verb }) => verb === 'get').length, 19);
    });

    it('holds back many until the annotation allows them', async () => {
      await vanished(20);
      let changes = 0;
      const syncer = stage.start('sync', { onChange: () => changes++ });
      await stage.settle(3_600_000);
      assert.deepEqual([stage.provider.writes, stage.consumer.calls.filter(({ verb }) => verb === 'get')], [[], []]);
      assert.match(syncer.problems()[0] ?? '', /20 copies in the provider have no object in this cluster/);
      assert.ok(changes > 0);
      syncer.allowDeletes();
      await stage.settle();
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
      assert.deepEqual(syncer.problems(), []);
    });

    it('continues by itself when the objects are restored', async () => {
      await vanished(25);
      const syncer = stage.start();
      await stage.settle();
      for (const key of heldKeys(25)) stage.put(key);
      await stage.settle();
      assert.deepEqual(syncer.problems(), []);
      assert.equal(
        stage.provider.writes.some((write) => write.startsWith('delete')),
        false,
      );
      assert.equal(stage.provider.writes.length, 25, 'each is stamped');
    });

    it('trusts a read more than a list', async () => {
      await vanished(1);
      const [key] = heldKeys(1);
      assert.ok(key);
      const held: (() => void)[] = [];
      stage.start();
      stage.consumer.deliver = (_, event) => void held.push(event);
      stage.put(key);
      await stage.settle();
      assert.equal(
        stage.provider.writes.some((write) => write.startsWith('delete')),
        false,
      );
      stage.consumer.deliver = (_, event) => event();
      for (const event of held) event();
    });

    it('keeps copies of another cluster with the same kubeconfig, and syncs its own', async () => {
      await vanished(3);
      stage.bind('uid-in-another-cluster');
      stage.start();
      stage.put(tea);
      await stage.settle(60_000);
      assert.equal(stage.provider.list(stage.kettles.provider).length, 4);
      await stage.kill();
      const syncer = stage.start('drain');
      await stage.remove(tea);
      await stage.settle(60_000);
      assert.equal(stage.provider.list(stage.kettles.provider).length, 3);
      assert.equal(syncer.remaining(), 0);
    });

    it('deletes nothing while the kind does not exist', async () => {
      await vanished(3);
      stage.consumer.drop(customResourceDefinitions, { name: 'kettles.kitchen.example' });
      stage.start();
      await stage.settle(60_000);
      assert.deepEqual(stage.provider.writes, []);
      stage.establish();
      await stage.settle();
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
    });
  });

  describe('when the binding is being deleted', () => {
    it('drain: deletes copies, then removes finalizers, and creates nothing', async () => {
      await inStep();
      await stage.kill();
      const syncer = stage.start('drain');
      stage.put({ namespace: 'team-a', name: 'late' });
      await stage.settle();
      assert.equal(syncer.remaining(), 2);
      await stage.remove(tea);
      await stage.settle();
      assert.deepEqual([stage.object(tea), stage.copy(teaCopy), syncer.remaining()], [undefined, undefined, 0]);
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
    });

    it('drain: deletes any number of copies of a kind that is already deleted', async () => {
      open();
      stage.start();
      for (const key of heldKeys(30)) stage.put(key);
      await stage.settle();
      await stage.kill();
      for (const key of heldKeys(30)) stage.consumer.drop(stage.kettles.consumer, key);
      stage.consumer.drop(customResourceDefinitions, { name: 'kettles.kitchen.example' });
      const syncer = stage.start('drain');
      assert.equal(syncer.remaining(), 30);
      await stage.settle();
      assert.equal(syncer.remaining(), 0);
    });

    it('drain: does not wait for copies that it never deletes', async () => {
      const isolated = open({ scope: 'Cluster', isolation: 'Prefixed' });
      isolated.putCopy(
        { name: 'left-by-another-isolation' },
        { metadata: { name: '', annotations: ownAnnotations('left-by-another-isolation', 'c-1') } },
      );
      isolated.putCopy({ name: 'kb-acme-tea' }, { metadata: { name: '', annotations: ownAnnotations('tea', 'c-2') } });
      isolated.putCopy(
        { name: 'kb-acme-clone' },
        { metadata: { name: '', annotations: ownAnnotations('tea', 'c-2') } },
      );
      const syncer = isolated.start('drain');
      assert.equal(syncer.remaining(), 1);
      await isolated.settle();
      assert.equal(syncer.remaining(), 0);
      assert.deepEqual(isolated.provider.writes, ['delete kettles kb-acme-tea']);
    });

    it('does not report zero remaining objects before it knows', () => {
      open();
      stage.establish(false);
      assert.equal(stage.start('drain').remaining(), Number.POSITIVE_INFINITY);
    });
  });

  describe('when calls fail', () => {
    const forbidden = (): never => {
      throw new ApiError(403, 'Forbidden', 'kettles is forbidden');
    };

    it('retries a 403 at least every five seconds, and reports it', async () => {
      open();
      stage.provider.fault = forbidden;
      const syncer = stage.start();
      stage.put(tea);
      await stage.settle(60_000);
      const before = stage.provider.calls.length;
      assert.ok(before >= 12 && before < 30, `${before}`);
      assert.match(syncer.problems().join(), /the provider denied permission: kettles is forbidden/);
      stage.provider.fault = () => {};
      await stage.settle(5_000);
      assert.ok(stage.copy(teaCopy));
      assert.deepEqual(syncer.problems(), []);
    });

    it('retries all keys as soon as one call succeeds', async () => {
      open();
      stage.provider.fault = () => {
        throw new TransportError('unreachable', undefined, true);
      };
      stage.start();
      for (const key of heldKeys(50)) stage.put(key);
      await stage.settle(600_000);
      assert.ok(stage.provider.calls.length < 50 * 50, `${stage.provider.calls.length}`);
      stage.provider.fault = () => {};
      await stage.settle(30_000);
      assert.equal(stage.provider.list(stage.kettles.provider).length, 50);
      assert.equal(stage.consumer.writes.length, 50);
    });

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
      for (let i = 0; i < 200; i++) {
        stage.report(teaCopy, { beat: i });
        await stage.clock.advance(50);
      }
      const tries = stage.provider.writes.length;
      assert.ok(tries < 15, `${tries} tries of the same write`);
      assert.match(syncer.problems().join(), /the provider rejected the request: spec.litres: too many/);
      assert.deepEqual([changes, stage.events.length], [1, 1], 'told once');
      stage.put(tea, { ...stage.object(tea), spec: { litres: 2 } });
      await stage.settle();
      assert.deepEqual(syncer.problems(), []);
    });

    it('loses no value in conflicts', async () => {
      await inStep();
      let conflicts = 0;
      stage.provider.fault = ({ verb }) => {
        if (verb === 'patch' && conflicts++ < 3) throw new ApiError(409, 'Conflict', 'modified');
      };
      stage.put(tea, { ...stage.object(tea), spec: { litres: 7 } });
      await stage.settle(10_000);
      assert.equal(litres(stage.copy(teaCopy)), 7);
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
      assert.deepEqual([litres(stage.copy(teaCopy)), await repairs()], [3, 1]);
      stage.provider.drop(stage.kettles.provider, teaCopy);
      await stage.settle();
      assert.deepEqual([litres(stage.copy(teaCopy)), await repairs()], [3, 2]);
      stage.consumer.drop(stage.kettles.consumer, tea);
      stage.put(tea);
      await stage.settle();
      assert.deepEqual([litres(stage.copy(teaCopy)), await repairs()], [2, 2]);
    });

    it('backs off from a provider that undoes writes', async () => {
      await inStep();
      const undo = (): void => {
        const copy = stage.copy(teaCopy);
        if (copy) stage.putCopy(teaCopy, { ...copy, spec: { litres: 9 } });
      };
      stage.provider.answered = undo;
      undo();
      await stage.settle(60_000);
      assert.ok(stage.provider.writes.length < 10, `${stage.provider.writes.length}`);
    });

    it('backs off from a status that is not kept', async () => {
      await inStep();
      stage.consumer.admit = (_, { status: __, ...object }) => object as never;
      stage.report(teaCopy, { hot: true });
      await stage.settle(60_000);
      stage.put(tea, { ...stage.object(tea), spec: { litres: 3 } });
      await stage.settle(3_600_000);
      assert.ok(stage.consumer.writes.length < 15, `${stage.consumer.writes.length} writes in an hour`);
      assert.equal(stage.events.length, 1);
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
      assert.deepEqual(
        stage.provider.calls.map(({ verb }) => verb),
        ['create', 'delete'],
      );
      for (const event of held) event();
      await stage.settle();
      assert.equal(stage.provider.calls.length, 2);
    });

    it('reports a status without a subresource instead of writing it', async () => {
      await inStep({ statusSubresource: false });
      stage.report(teaCopy, { hot: true });
      await stage.settle(60_000);
      assert.deepEqual(stage.consumer.writes, []);
      assert.match(stage.events.map(({ note }) => note).join(), /no status subresource/);
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
  function unlist(cluster: MemoryCluster): () => void {
    const watch = cluster.watch.bind(cluster);
    const stores: { list(): void }[] = [];
    cluster.watch = <T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> => {
      if (spec.resource.plural !== 'kettles') return watch(spec);
      const store = new InformerStore(spec, stage.clock, silentLog);
      stores.push({ list: () => store.beginList().commit() });
      return { store, release: () => store.close() };
    };
    return () => stores.forEach((store) => void store.list());
  }

  it('reports that this cluster does not list its objects, also after a restart', async () => {
    open();
    unlist(stage.consumer);
    let changes = 0;
    const syncer = stage.start('sync', { onChange: () => changes++ });
    await stage.settle(20_000);
    assert.deepEqual([syncer.served(), syncer.problems(), changes], [false, [], 0]);
    await stage.settle(20_000);
    assert.match(
      syncer.problems().join(),
      /kettles\.kitchen\.example: the konnector has not listed the objects in this cluster yet; it needs permission to list and watch them/,
    );
    assert.equal(changes, 1);
  });

  it('reports a CustomResourceDefinition that is not established', async () => {
    open();
    stage.establish(false);
    const syncer = stage.start();
    await stage.settle(40_000);
    assert.match(syncer.problems().join(), /CustomResourceDefinition kettles\.kitchen\.example is not established/);
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

  it('backs off and reports a problem if the namespace of the provider does not exist', async () => {
    open();
    stage.provider.fault = ({ verb }) => {
      if (verb === 'create') throw new ApiError(404, 'NotFound', 'namespaces "kb-acme-team-a" not found');
    };
    const syncer = stage.start();
    stage.put(tea);
    await stage.settle(600_000);
    const creates = stage.provider.calls.filter(({ verb }) => verb === 'create').length;
    assert.ok(creates <= 40, `${creates} creates in ten minutes`);
    assert.match(syncer.problems().join(), /namespaces "kb-acme-team-a" not found/);
    stage.provider.fault = () => undefined;
    await stage.settle(30_000);
    assert.ok(stage.copy(teaCopy));
    assert.deepEqual(syncer.problems(), []);
  });
});
