import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindingBundles, apiServiceBindings } from '../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 30_000 };

describe('a bundle', () => {
  let stage: BindingStage;
  const bindings = async (): Promise<string[]> => {
    const { items } = await stage.side.consumer.client.list(apiServiceBindings);
    return items.map(({ metadata }) => metadata.name).sort();
  };
  const whenBound = (names: readonly string[], within = patience): Promise<unknown> =>
    until(`the bindings ${names}`, async () => (await bindings()).join() === names.join(), within);

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ isolation: 'Prefixed' });
    const { consumer, backend } = stage.side;
    await consumer.start();
    await backend.export({ name: 'kettles', kinds: [stage.kinds.kettles] });
    await consumer.bundle('acme', await consumer.connect(backend.identity.kubeconfig, { labelled: false }));
  });
  after(async () => stage.close());

  it('binds the exports of the provider', async () => {
    await whenBound(['kettles']);
    await stage.side.consumer.whenCondition('kettles', 'Ready');
    const where = { namespace: stage.side.namespace, name: 'tea' };
    await stage.create(stage.kinds.kettles, where);
    await stage.whenSynced(stage.kinds.kettles, where);
  });

  it('binds a later export at once', async () => {
    const lists = () => stage.calls({ verbs: ['list'], resources: ['apiserviceexports'] }).length;
    const before = lists();
    await stage.side.backend.export({ name: 'ovens', kinds: [stage.kinds.ovens] });
    await whenBound(['kettles', 'ovens']);
    assert.equal(lists(), before, 'watched, not polled');
    await stage.side.consumer.whenCondition('ovens', 'Ready');
  });

  it('deletes its bindings, their objects, and the copies when it is deleted', async function () {
    this.timeout(180_000);
    const { consumer } = stage.side;
    try {
      // Restarts the controller manager; otherwise its garbage collector may take half a minute to discover new kinds.
      await consumer.plane.component('kube-controller-manager').restart();
    } catch {
      // This test cannot restart the controller manager of an attached plane, so it only waits.
    }
    await consumer.client.delete(apiServiceBindingBundles, { name: 'acme' });
    await whenBound([], { timeoutMs: 120_000 });
    const { name } = stage.kinds.kettles.crd.metadata;
    assert.equal(await consumer.get(customResourceDefinitions, { name }), undefined);
    assert.equal(await stage.copy(stage.kinds.kettles, { namespace: stage.side.namespace, name: 'tea' }), undefined);
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
