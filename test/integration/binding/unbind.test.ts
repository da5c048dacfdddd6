import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindings, unbindFinalizer, unbindPolicyAnnotation } from '../../../src/api/binding/names.ts';
import type { ObjectName } from '../../../src/api/object.ts';
import { customResourceDefinitions, secrets } from '../../../src/api/resources.ts';
import type { Client } from '../../../src/kube/client.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { kitchenClaim, kitchenSecret } from '../../support/binding/kitchen-secrets.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 30_000 };
const orphan = { [unbindPolicyAnnotation]: 'Orphan' };

describe('a binding that is deleted', () => {
  let stage: BindingStage;
  const kettle = (name: string): ObjectName => ({ namespace: stage.side.namespace, name });
  const oven = (name: string): ObjectName => ({ name });
  const crds = () => [stage.kinds.kettles, stage.kinds.ovens].map(({ crd }) => crd.metadata.name);

  const unbind = () => stage.side.consumer.client.delete(apiServiceBindings, { name: 'kitchen' });

  const bind = async (annotations: Readonly<Record<string, string>> = {}): Promise<void> => {
    const { consumer, backend } = stage.side;
    await consumer.bind('kitchen', await consumer.connect(backend.identity.kubeconfig), { annotations });
    await consumer.whenCondition('kitchen', 'Ready');
  };

  /** Creates one object of each kind and waits until both are synced. */
  const fill = async (name: string): Promise<void> => {
    await stage.create(stage.kinds.kettles, kettle(name));
    await stage.create(stage.kinds.ovens, oven(name));
    await stage.whenSynced(stage.kinds.kettles, kettle(name));
    await stage.whenSynced(stage.kinds.ovens, oven(name));
  };

  const whenUnbound = async (): Promise<void> => {
    const { consumer } = stage.side;
    const gone = async (): Promise<boolean> =>
      (await consumer.get(apiServiceBindings, { name: 'kitchen' })) === undefined;
    await until('the binding to be gone', gone, patience).catch(async (error: Error) => {
      const found = await consumer.get(apiServiceBindings, { name: 'kitchen' });
      throw new Error(`${error.message}: ${JSON.stringify(found)}\n${await consumer.konnector.log()}`);
    });
    for (const name of crds()) assert.equal(await consumer.get(customResourceDefinitions, { name }), undefined);
  };

  const copies = async (name: string): Promise<number> => {
    const found = [
      await stage.copy(stage.kinds.kettles, kettle(name)),
      await stage.copy(stage.kinds.ovens, oven(name)),
    ];
    return found.filter((copy) => copy !== undefined).length;
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ proxy: true, claims: ['secrets'] });
    await stage.side.consumer.start();
    await stage.bind('kitchen', [stage.kinds.kettles, stage.kinds.ovens], { claims: [kitchenClaim] });
  });
  after(async () => stage.close());

  it('deletes its CRDs, its objects, their copies, and copies of claimed objects', async () => {
    const { namespace, consumer, backend } = stage.side;
    const [here, there] = [consumer.client, stage.provider.client];
    await fill('first');
    assert.equal(await copies('first'), 2);
    const service = backend.serviceNamespaceOf(namespace);
    const at = (client: Client, place: string, name: string) => getIfThere(client, secrets, { namespace: place, name });
    await here.create(secrets, kitchenSecret({ namespace, name: 'mine' }, 'ours'));
    await there.create(secrets, kitchenSecret({ namespace: service, name: 'theirs' }, 'theirs'));
    await until('the copy there', () => at(there, service, 'mine'), patience);
    await until('the copy here', () => at(here, namespace, 'theirs'), patience);
    const found = await stage.side.consumer.get(apiServiceBindings, { name: 'kitchen' });
    assert.deepEqual(found?.metadata.finalizers, [unbindFinalizer]);
    await unbind();
    await whenUnbound();
    assert.equal(await copies('first'), 0);
    assert.equal(await at(there, service, 'mine'), undefined);
    assert.equal(await at(here, namespace, 'theirs'), undefined);
    await here.delete(secrets, { namespace, name: 'mine' });
    await there.delete(secrets, { namespace: service, name: 'theirs' });
  });

  it('waits for copies that the provider still needs, and reports it', async () => {
    await bind();
    await fill('second');
    const { inProvider } = stage.kinds.ovens;
    const name = stage.copyName(stage.kinds.ovens, oven('second'));
    const finalizers = (value: string[] | null) =>
      stage.provider.client.mergePatch(inProvider, name, { metadata: { finalizers: value } });
    await finalizers(['acme.example/busy']);
    await unbind();
    const condition = await stage.side.consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'Unbinding' });
    await stage.whenObjectGone(stage.kinds.kettles, kettle('second'));
    assert.ok(await stage.side.consumer.get(stage.kinds.ovens.inConsumer, oven('second')));
    assert.match(condition.message ?? '', /waiting for/);
    await finalizers(null);
    await whenUnbound();
    assert.equal(await copies('second'), 0);
  });

  it('waits for a provider that is down, until the policy is Orphan', async () => {
    await bind();
    await fill('third');
    stage.proxy.refuse();
    stage.proxy.resetAll();
    await unbind();
    await stage.side.consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'Unbinding' });
    const { client } = stage.side.consumer;
    await client.mergePatch(apiServiceBindings, { name: 'kitchen' }, { metadata: { annotations: orphan } });
    await whenUnbound();
    await stage.proxy.pass();
    assert.equal(await copies('third'), 2);
  });

  it('leaves the copies with the policy Orphan, and a new binding adopts them when their objects are recreated', async () => {
    await bind(orphan);
    await fill('fourth');
    const before = await stage.copy(stage.kinds.ovens, oven('fourth'));
    await unbind();
    await whenUnbound();
    assert.equal(await copies('fourth'), 2);
    await bind();
    await fill('fifth');
    assert.equal(await copies('fourth'), 2);
    await fill('fourth');
    const after = await stage.copy(stage.kinds.ovens, oven('fourth'));
    assert.equal(after?.metadata.uid, before?.metadata.uid);
    await stage.side.consumer.client.delete(stage.kinds.ovens.inConsumer, oven('fourth'));
    await stage.whenCopyGone(stage.kinds.ovens, oven('fourth'));
  });

  it('does not block if the provider has deleted its export', async () => {
    const { consumer, backend } = stage.side;
    await backend.withdraw('kitchen');
    await consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'APIServiceExportNotFound' });
    await consumer.client.delete(stage.kinds.kettles.inConsumer, kettle('fifth'));
    await stage.whenObjectGone(stage.kinds.kettles, kettle('fifth'));
    await unbind();
    await whenUnbound();
    assert.equal(await copies('fifth'), 2);
    const { inProvider } = stage.kinds.ovens;
    assert.ok(await getIfThere(stage.provider.client, inProvider, stage.copyName(stage.kinds.ovens, oven('fifth'))));
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
