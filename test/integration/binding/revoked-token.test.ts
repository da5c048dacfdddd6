import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { keepKubeconfigAnnotation } from '../../../src/api/binding/names.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';

describe('a token that is revoked', () => {
  let stage: BindingStage;
  const kind = () => stage.kinds.kettles;
  const name = (kettle: string) => ({ namespace: stage.side.namespace, name: kettle });

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    await stage.side.consumer.start();
    await stage.bind('kitchen', [kind()]);
    for (const kettle of ['kept', 'deleted']) await stage.create(kind(), name(kettle));
    for (const kettle of ['kept', 'deleted']) await stage.whenSynced(kind(), name(kettle));
  });
  after(async () => stage.close());

  it('stops the sync, and the binding reports it', async () => {
    const { backend, consumer } = stage.side;
    await backend.identity.revoke(backend.identity.tokenSecret);
    // The API server accepts a revoked token for some more seconds.
    const refused = async (): Promise<boolean> => {
      await consumer.client.mergePatch(kind().inConsumer, name('kept'), { spec: { heat: Date.now() % 1_000_000 } });
      return stage.calls().some(({ code }) => code === 401);
    };
    await until('a refusal', refused, { timeoutMs: 30_000, everyMs: 500 });
    await stage.create(kind(), name('late'));
    await consumer.client.delete(kind().inConsumer, name('deleted'));
    await consumer.whenCondition('kitchen', 'Ready', 'False', { message: /401/ });
    await consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'WatchRefused', message: /401/ });
  });

  it('deletes nothing, on either side', async () => {
    assert.ok(await stage.copy(kind(), name('kept')));
    assert.ok(await stage.copy(kind(), name('deleted')));
    assert.ok(await stage.side.consumer.get(kind().inConsumer, name('deleted')));
  });

  it('can be replaced, and everything converges', async () => {
    const { backend, consumer } = stage.side;
    await backend.identity.rotate();
    // Without valid credentials the server cannot read the provider's Secret, so the test copies it.
    const annotations = { [keepKubeconfigAnnotation]: 'true' };
    await consumer.connect(backend.identity.kubeconfig, { annotations });
    await stage.whenSynced(kind(), name('late'));
    await stage.whenObjectGone(kind(), name('deleted'));
    assert.equal(await stage.copy(kind(), name('deleted')), undefined);
    const object = await consumer.get(kind().inConsumer, name('kept'));
    const heat = own(object?.spec, 'heat');
    await stage.whenCopy(kind(), name('kept'), ({ spec }) => own(spec, 'heat') === heat);
    await consumer.whenCondition('kitchen', 'Ready');
    const made = stage.writes(kind()).filter(({ verb, code }) => verb === 'create' && code === 201);
    assert.deepEqual(made.map((call) => call.name).sort(), ['deleted', 'kept', 'late']);
  });
});
