import assert from 'node:assert/strict';
import {
  apiServiceNamespaces,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import {
  clusterNamespace,
  litresOf,
  openStage,
  otherKonnectorAnnotations,
  ownAnnotations,
  SyncStage,
  type SyncStageOptions,
  stageInSync,
  tea,
  teaCopy,
} from '../../../support/binding/sync-stage.ts';
import { pluck } from '../../../support/pluck.ts';

describe('syncer', () => {
  let stage: SyncStage;
  afterEach(() => stage.kill());

  const open = (options?: SyncStageOptions): void => {
    stage = openStage(options);
  };
  const inStep = async (): Promise<void> => {
    stage = await stageInSync();
  };
  const heldKeys = (count: number): { namespace: string; name: string }[] =>
    Array.from({ length: count }, (_, i) => ({ namespace: 'team-a', name: `tea-${i}` }));

  /** A stage of this many copies whose objects vanished while no syncer ran. */
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

  describe('in the life of an object', () => {
    it('creates the copy, adds the finalizer, and copies the status, without reads', async () => {
      open();
      stage.start();
      await stage.settle();
      stage.put(tea, { metadata: { name: 'tea', labels: { app: 'tea' } } });
      await stage.settle();
      assert.deepEqual(pluck(stage.provider.calls, 'verb', 'fieldManager'), [['create', 'kube-bind.io']]);
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
      assert.deepEqual(pluck(stage.provider.calls, 'verb'), ['create', 'delete']);
      assert.ok(!stage.consumer.calls.some(({ verb }) => verb === 'get' || verb === 'list'));
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
        const { annotations, ownerReferences = [] } = stage.copy(copyName)?.metadata ?? {};
        const { uid = '' } = stage.object({ name: 'tea' })?.metadata ?? {};
        assert.deepEqual(annotations, ownAnnotations('tea', uid));
        const owned = pluck(ownerReferences, 'kind', 'uid', 'controller');
        assert.deepEqual(owned, isolation === 'Namespaced' ? [] : [['Namespace', 'uid-of-kb-acme', undefined]]);
        stage.report(copyName, { hot: true });
        await stage.settle();
        assert.deepEqual(stage.object({ name: 'tea' })?.status, { hot: true });
        await stage.remove({ name: 'tea' });
        await stage.settle();
        assert.deepEqual([stage.object({ name: 'tea' }), stage.copy(copyName)], [undefined, undefined]);
      });
    }
  });

  describe('when an object is deleted', () => {
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

    it('deletes any number of copies after observed deletions of their objects', async () => {
      await inStep();
      for (const key of heldKeys(30)) stage.put(key);
      await stage.settle();
      for (const key of heldKeys(30)) stage.consumer.drop(stage.kettles.consumer, key);
      await stage.settle();
      const copies = stage.provider.list(stage.kettles.provider);
      assert.equal(copies.map(({ metadata }) => metadata.name).join(), 'tea');
    });
  });

  it('changes no objects of other owners, and reports whose name is taken', async () => {
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
    assert.match(syncer.problems().join(), /already has an object "[^"]*tea" that is not the copy of this object/);
    stage.provider.drop(stage.kettles.provider, { name: 'tea' });
    await stage.settle();
    assert.equal(litresOf(stage.copy({ name: 'tea' })), 2);
    assert.deepEqual(syncer.problems(), []);
  });

  describe('with copies whose objects vanished unobserved', () => {
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
      assert.match(syncer.problems()[0] ?? '', /20 copies have no original/);
      assert.ok(changes > 0);
      syncer.allowDeletes();
      await stage.settle();
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
      assert.deepEqual(syncer.problems(), []);
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
      assert.ok(!stage.provider.writes.some((write) => write.startsWith('delete')));
      stage.consumer.deliver = (_, event) => event();
      for (const event of held) event();
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
      assert.equal(syncer.remaining(), 1, 'an object and its copy count once');
      await stage.remove(tea);
      await stage.settle();
      assert.deepEqual([stage.object(tea), stage.copy(teaCopy), syncer.remaining()], [undefined, undefined, 0]);
      assert.equal(stage.provider.list(stage.kettles.provider).length, 0);
    });

    it('drain: deletes any number of copies of a kind that is already deleted', async () => {
      await vanished(30);
      stage.consumer.drop(customResourceDefinitions, { name: 'kettles.kitchen.example' });
      const syncer = stage.start('drain');
      assert.equal(syncer.remaining(), 30);
      await stage.settle();
      assert.equal(syncer.remaining(), 0);
    });

    it('drain: does not wait for copies that it never deletes', async () => {
      open({ scope: 'Cluster', isolation: 'Prefixed' });
      for (const [name, of] of [
        ['left-by-another-isolation', 'left-by-another-isolation'],
        ['kb-acme-tea', 'tea'],
        ['kb-acme-clone', 'tea'],
      ] as const)
        stage.putCopy({ name }, { metadata: { name, annotations: ownAnnotations(of, `uid-of-${of}`) } });
      const syncer = stage.start('drain');
      assert.equal(syncer.remaining(), 1);
      await stage.settle();
      assert.equal(syncer.remaining(), 0);
      assert.deepEqual(stage.provider.writes, ['delete kettles kb-acme-tea']);
    });

    it('does not report zero remaining objects before it knows', () => {
      open();
      stage.establish(false);
      assert.equal(stage.start('drain').remaining(), Number.POSITIVE_INFINITY);
    });
  });
});
