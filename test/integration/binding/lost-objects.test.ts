import assert from 'node:assert/strict';
import { allowDeletesAnnotation, apiServiceBindings } from '../../../src/api/binding/names.ts';
import { BindingStage } from '../../support/binding/stage.ts';

/** As after a restore from an old backup: objects are missing, and the konnector observed no deletion. */
describe('objects that disappeared while the konnector was down', () => {
  let stage: BindingStage;
  const kind = () => stage.kinds.ovens;
  const names = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
  const fill = async (all: readonly string[]): Promise<void> => {
    await Promise.all(all.map((name) => stage.create(kind(), { name })));
    await Promise.all(all.map((name) => stage.whenSynced(kind(), { name })));
  };
  const lose = async (all: readonly string[]): Promise<void> => {
    const { consumer } = stage.side;
    await consumer.konnector.kill();
    await Promise.all(
      all.map(async (name) => {
        await consumer.client.mergePatch(kind().inConsumer, { name }, { metadata: { finalizers: null } });
        await consumer.client.delete(kind().inConsumer, { name });
      }),
    );
    await consumer.start();
  };
  const copies = async (all: readonly string[]): Promise<number> => {
    const found = await Promise.all(all.map((name) => stage.copy(kind(), { name })));
    return found.filter((copy) => copy !== undefined).length;
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster' });
    await stage.side.consumer.start();
    await stage.bind('kitchen', [kind()]);
  });
  after(async () => stage.close());

  it('keep their copies if they are many, until the annotation allows the deletes; other objects sync meanwhile', async () => {
    const { consumer } = stage.side;
    const many = names('many', 25);
    await fill(many);
    await lose(many);
    // The condition counts the copies that were held back when it was written, 20 or more. It is written again after a minute.
    const message = /2[0-5] copies have no original.*allow-deletes/;
    await consumer.whenCondition('kitchen', 'Connected', 'False', { reason: 'ObjectsNotInSync', message });
    await fill(['meanwhile']);
    assert.equal(await copies(many), 25);
    const allowed = { metadata: { annotations: { [allowDeletesAnnotation]: 'now' } } };
    await consumer.client.mergePatch(apiServiceBindings, { name: 'kitchen' }, allowed);
    for (const name of many) await stage.whenCopyGone(kind(), { name });
    await consumer.whenCondition('kitchen', 'Ready');
    assert.equal(await copies(['meanwhile']), 1);
  });
});
