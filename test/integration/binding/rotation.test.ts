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

  /** Checks that a new object is copied up and that its status is copied down. */
  const works = async (): Promise<void> => {
    const name = { name: next() };
    await stage.create(stage.kinds.ovens, name);
    await stage.whenCopy(stage.kinds.ovens, name);
    await stage.report(stage.kinds.ovens, name, { result: 'done' });
    await stage.whenObject(stage.kinds.ovens, name, ({ status }) => own(status, 'result') === 'done');
  };

  /** Creates objects in sequence until `end` is called. */
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
   * Checks that every object has a copy and that the konnector deleted none, so that it created each copy once. The audit log cannot count
   * creates: the API server may execute one whose connection broke with its session.
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

  /** The message of the condition about the provider's kubeconfig; undefined if it is valid. */
  const secretProblem = async (): Promise<string | undefined> => {
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

  it('are used at once while objects are created: none is lost, none is created twice, and no call uses the old ones', async () => {
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

  it('are rejected if they name another port of the same host', async () => {
    const { backend } = stage.side;
    const other = await proxyTo();
    const good = await kubeconfigOfConsumer();
    await backend.identity.publish(backend.identity.kubeconfigVia(other.server));
    assert.match(
      await until('the condition at the provider', secretProblem, patience),
      /a provider may not change the server/,
    );
    assert.equal(other.connections, 0);
    assert.equal(await kubeconfigOfConsumer(), good);
    await backend.identity.publish(good);
    await until(
      'the condition at the provider to be gone',
      async () => (await secretProblem()) === undefined,
      patience,
    );
  });

  it('are also read from the consumer, where kubectl bind writes them', async () => {
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

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
    assert.deepEqual(stage.providerRefusals(), []);
  });
});
