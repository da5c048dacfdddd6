import assert from 'node:assert/strict';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import type { Verdict } from '../../../sandbox/http-script.ts';
import { until } from '../../../sandbox/wait.ts';
import { BindingStage } from '../../support/binding/stage.ts';

describe('an object that is deleted and created again while a status write is on its way', () => {
  let stage: BindingStage;
  let proxy: FaultProxy;
  /** Forwards the status write that the proxy holds back. */
  let release: (() => void) | undefined;
  let isHolding = false;
  const kind = () => stage.kinds.kettles;
  const name = () => ({ namespace: stage.side.namespace, name: 'evening' });

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster' });
    const { consumer } = stage.side;
    proxy = await consumer.plane.proxy({
      async onRequest({ method, path }): Promise<Verdict> {
        if (isHolding && method === 'PATCH' && path.includes('/kettles/evening/status')) {
          isHolding = false;
          await new Promise<void>((resolve) => {
            release = resolve;
          });
        }
        return 'pass';
      },
    });
    await (await consumer.spawnVia(proxy.server)).whenReady();
    await stage.bind('kitchen', [kind()]);
    await stage.create(kind(), name());
    await stage.whenSynced(kind(), name());
  });
  after(async () => {
    release?.();
    await stage.close();
    await proxy.close();
  });

  it('does not get the status of the deleted object', async function () {
    this.timeout(60_000);
    const { consumer } = stage.side;
    const mark = consumer.plane.auditLog.mark();
    isHolding = true;
    await stage.report(kind(), name(), { result: 'of the first' });
    await until('the status write', () => release !== undefined, { timeoutMs: 30_000 });
    await consumer.client.delete(kind().inConsumer, name());
    await consumer.client.mergePatch(kind().inConsumer, name(), { metadata: { finalizers: null } });
    await stage.create(kind(), name());
    release?.();
    const written = () =>
      consumer.plane.auditLog
        .calls({ user: consumer.konnectorUser, since: mark, verbs: ['patch'], resources: ['kettles/status'] })
        .at(0);
    const { code } = await until('the answer to the status write', written, { timeoutMs: 30_000 });
    assert.equal(code, 409);
  });

  it('is then synced like any other', async () => {
    await stage.whenSynced(kind(), name());
    await stage.report(kind(), name(), { result: 'of the second' });
    await stage.whenObject(kind(), name(), ({ status }) => JSON.stringify(status) === '{"result":"of the second"}');
    await stage.side.consumer.whenCondition('kitchen', 'Ready');
  });
});
