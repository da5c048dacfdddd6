import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { providerUidAnnotation } from '../../../src/api/binding/names.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';

describe('a provider that is unreachable for a while', () => {
  let stage: BindingStage;
  const name = (dish: string) => ({ namespace: stage.side.namespace, name: dish });
  const dishes = ['kept', 'changed', 'deleted', 'reported'];

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster', proxy: true });
    await stage.side.consumer.start();
    await stage.bind('kitchen', [stage.kinds.kettles]);
    for (const dish of dishes) await stage.create(stage.kinds.kettles, name(dish));
    for (const dish of dishes) await stage.whenSynced(stage.kinds.kettles, name(dish));
  });
  after(async () => stage.close());

  it('delays the deletion of an object until its copy is deleted', async () => {
    const { client } = stage.side.consumer;
    stage.proxy.refuse();
    stage.proxy.resetAll();
    await stage.create(stage.kinds.kettles, name('made'));
    await client.mergePatch(stage.kinds.kettles.inConsumer, name('changed'), { spec: { heat: 200 } });
    await client.delete(stage.kinds.kettles.inConsumer, name('deleted'));
    await stage.report(stage.kinds.kettles, name('reported'), { result: 'hot' });
    await until('a try', async () => /ECONNREFUSED/.test(await stage.side.consumer.konnector.log()), {
      timeoutMs: 30_000,
    });
    const found = await stage.side.consumer.get(stage.kinds.kettles.inConsumer, name('deleted'));
    assert.ok(found?.metadata.deletionTimestamp);
  });

  it('is reported by one condition within a minute', async () => {
    const { consumer } = stage.side;
    await consumer.whenCondition('kitchen', 'Ready', 'False', {
      reason: 'ClusterBindingUpdateFailed',
      timeoutMs: 60_000,
    });
    const binding = (await consumer.stores()).bindings.get('kitchen');
    const bad = binding?.conditions.filter(({ status }) => status !== 'True').map(({ type }) => type);
    assert.deepEqual(bad, ['Ready', 'Heartbeating']);
  });

  it('is in sync after its return', async () => {
    const { consumer } = stage.side;
    await stage.proxy.pass();
    await stage.whenCopy(stage.kinds.kettles, name('changed'), ({ spec }) => own(spec, 'heat') === 200);
    await stage.whenObjectGone(stage.kinds.kettles, name('deleted'));
    assert.equal(await stage.copy(stage.kinds.kettles, name('deleted')), undefined);
    await stage.whenObject(stage.kinds.kettles, name('reported'), ({ status }) => own(status, 'result') === 'hot');
    await stage.whenSynced(stage.kinds.kettles, name('made'));
    await consumer.whenCondition('kitchen', 'Ready');
  });

  it('may be silent for a moment without lost changes', async () => {
    stage.proxy.stall();
    await stage.create(stage.kinds.kettles, name('quiet'));
    await stage.report(stage.kinds.kettles, name('reported'), { result: 'cold' });
    await stage.proxy.pass();
    await stage.whenSynced(stage.kinds.kettles, name('quiet'));
    await stage.whenObject(stage.kinds.kettles, name('reported'), ({ status }) => own(status, 'result') === 'cold');
  });

  it('has lost nothing and received nothing twice', async () => {
    const left = ['kept', 'changed', 'reported', 'made', 'quiet'];
    for (const dish of left) {
      const [object, copy] = await Promise.all([
        stage.whenSynced(stage.kinds.kettles, name(dish)),
        stage.whenCopy(stage.kinds.kettles, name(dish)),
      ]);
      assert.equal(object.metadata.annotations?.[providerUidAnnotation], copy.metadata.uid, dish);
    }
    const writes = stage.writes(stage.kinds.kettles);
    const made = writes.filter(({ verb, code }) => verb === 'create' && code === 201).map((call) => call.name);
    assert.deepEqual([...made].sort(), [...left, 'deleted'].sort());
    const deleted = writes.filter(({ verb, code }) => verb === 'delete' && code === 200).map((call) => call.name);
    assert.deepEqual(deleted, ['deleted']);
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
