import assert from 'node:assert/strict';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import { until } from '../../../sandbox/wait.ts';
import { clusterBindings, keepKubeconfigAnnotation, kubeconfigKey } from '../../../src/api/binding/names.ts';
import { secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { konnectorNamespace } from '../../support/binding/konnector-rights.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 30_000 };

describe('credentials that are replaced', () => {
  let stage: BindingStage;
  let secret: string;
  let count = 0;

  const next = (): string => `dish-${++count}`;

  /** An object that goes up, and whose status comes down. */
  const works = async (): Promise<void> => {
    const name = { name: next() };
    await stage.create(stage.kinds.ovens, name);
    await stage.whenCopy(stage.kinds.ovens, name);
    await stage.report(stage.kinds.ovens, name, { result: 'done' });
    await stage.whenObject(stage.kinds.ovens, name, ({ status }) => own(status, 'result') === 'done');
  };

  /** Objects that are made one after the other until `end` is called. */
  const steadily = (): { end: () => Promise<string[]> } => {
    const names: string[] = [];
    let ending = false;
    const run = async (): Promise<void> => {
      while (!ending) {
        const name = next();
        await stage.create(stage.kinds.ovens, { name });
        names.push(name);
      }
    };
    const running = run();
    return {
      async end() {
        ending = true;
        await running;
        return names;
      },
    };
  };

  /**
   * Every object has a copy, and none was ever deleted; so none was made twice. The audit log does not count creates: one that was cut
   * off together with its session may have been carried out all the same.
   */
  const assertOnce = async (names: readonly string[]): Promise<void> => {
    for (const name of names) await stage.whenSynced(stage.kinds.ovens, { name });
    const deletes = stage.writes(stage.kinds.ovens).filter(({ verb }) => verb === 'delete');
    assert.deepEqual(deletes, []);
  };

  const kubeconfigOfConsumer = async (): Promise<string> => {
    const found = await stage.side.consumer.get(secrets, { namespace: konnectorNamespace, name: secret });
    return Buffer.from(String(own(found?.['data'], kubeconfigKey)), 'base64').toString();
  };

  /** What the provider is told of the kubeconfig that it gives out, when that is not good. */
  const lookedAt = async (): Promise<string | undefined> => {
    const where = { namespace: stage.side.backend.clusterNamespace, name: 'cluster' };
    const { status } = await stage.provider.client.get(clusterBindings, where);
    const conditions = own(status, 'conditions') as { type: string; reason?: string; message?: string }[];
    return conditions.find(({ type, reason }) => type === 'SecretValid' && reason === 'ProviderSecretInvalid')?.message;
  };

  const proxyTo = async (): Promise<FaultProxy> => stage.provider.plane.proxy();

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ isolation: 'Prefixed', informerScope: 'Cluster', proxy: true });
    await stage.side.consumer.start();
    secret = await stage.bind('kitchen', [stage.kinds.ovens]);
    await works();
  });
  after(async () => stage.close());

  it('are taken over while objects are being made: none is lost, none is made twice, and nothing uses the old ones', async () => {
    const { identity } = stage.side.backend;
    const load = steadily();
    const before = stage.proxy.sockets;
    const old = await identity.rotate();
    await until('the old session to end', () => before.every(({ destroyed }) => destroyed), patience);
    await identity.revoke(old);
    const names = await load.end();
    assert.equal(await kubeconfigOfConsumer(), identity.kubeconfig);
    assert.ok(names.length > 3, `${names.length} objects`);
    await assertOnce(names);
    await works();
    await stage.side.consumer.whenCondition('kitchen', 'Ready');
  });

  it('are not taken over when they lead to another port of the same host', async () => {
    const { backend } = stage.side;
    const other = await proxyTo();
    const good = await kubeconfigOfConsumer();
    await backend.identity.publish(backend.identity.kubeconfigVia(other.server));
    assert.match(await until('the provider to be told', lookedAt, patience), /a provider may not change the server/);
    assert.equal(other.connections, 0);
    assert.equal(await kubeconfigOfConsumer(), good);
    await backend.identity.publish(good);
    await until('the provider to be content', async () => (await lookedAt()) === undefined, patience);
  });

  it('are taken from the consumer as well, as kubectl bind writes them there', async () => {
    const { identity } = stage.side.backend;
    const { consumer } = stage.side;
    const other = await proxyTo();
    const kubeconfig = identity.kubeconfigVia(other.server);
    const load = steadily();
    await consumer.connect(kubeconfig, { annotations: { [keepKubeconfigAnnotation]: 'true' } });
    await until('the new way to be used', () => other.connections > 3, patience);
    const names = await load.end();
    await assertOnce(names);
    await works();
    assert.equal(await kubeconfigOfConsumer(), kubeconfig);
  });

  it('that do not work are not used: the last good ones are, and the binding says so', async () => {
    const { consumer, backend } = stage.side;
    const good = await kubeconfigOfConsumer();
    const annotations = { [keepKubeconfigAnnotation]: 'true' };
    const load = steadily();
    await consumer.connect(good.replace(/token: .*/, 'token: nobody'), { annotations });
    const condition = await consumer.whenCondition('kitchen', 'SecretValid', 'False');
    assert.equal(condition.reason, 'KubeconfigSecretInvalid');
    assert.match(condition.message ?? '', /its new kubeconfig is not used, and the previous one stays in use: .*401/);
    await works();
    await consumer.connect('not: a: kubeconfig', { annotations });
    await consumer.whenCondition('kitchen', 'SecretValid', 'False');
    await works();
    await consumer.connect(backend.identity.kubeconfig, { annotations });
    await consumer.whenCondition('kitchen', 'SecretValid');
    await consumer.whenCondition('kitchen', 'Ready');
    await assertOnce(await load.end());
  });

  it('that the provider gives out and that do not work never reach the consumer', async () => {
    const { consumer, backend } = stage.side;
    const good = backend.identity.kubeconfig;
    // Without the annotation the provider may replace it.
    await consumer.connect(good);
    await backend.identity.publish(good.replace(/token: .*/, 'token: nobody'));
    assert.match(await until('the provider to be told', lookedAt, patience), /is not copied: .*401/);
    assert.equal(await kubeconfigOfConsumer(), good);
    await works();
    await backend.identity.publish(good);
    await until('the provider to be content', async () => (await lookedAt()) === undefined, patience);
  });

  it('never did what it may not', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
    assert.deepEqual(stage.providerRefusals(), []);
  });
});
