import assert from 'node:assert/strict';
import type { FixtureKind } from '../../../sandbox/binding/fixture-kinds.ts';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindings } from '../../../src/api/binding/names.ts';
import { BindingStage } from '../../support/binding/stage.ts';

describe('exports whose names have a common prefix', () => {
  let stage: BindingStage;
  let secret: string;
  const db = () => stage.kinds.kettles;
  const dbProd = () => stage.kinds.ovens;
  const row = (name: string) => ({ namespace: stage.side.namespace, name });

  /** The number of starts of the syncer of a kind. */
  const starts = async ({ crd }: FixtureKind): Promise<number> => {
    const log = await stage.side.consumer.konnector.log();
    return log.split('\n').filter((line) => /synced controller=sync\//.test(line) && line.includes(crd.metadata.name))
      .length;
  };
  const whenGone = (name: string) => {
    const gone = async () => (await stage.side.consumer.get(apiServiceBindings, { name })) === undefined;
    return until(`binding ${name} to be gone`, gone, { timeoutMs: 30_000 });
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster' });
    await stage.side.consumer.start();
    secret = await stage.bind('db', [db()]);
    await stage.bind('db-prod', [dbProd()]);
    await stage.create(db(), row('first'));
    await stage.create(dbProd(), { name: 'first' });
    await stage.whenSynced(db(), row('first'));
    await stage.whenSynced(dbProd(), { name: 'first' });
  });
  after(async () => stage.close());

  it('each start one syncer', async () => {
    assert.deepEqual([await starts(db()), await starts(dbProd())], [1, 1]);
  });

  it('end independently: the shorter name', async () => {
    const { client } = stage.side.consumer;
    await client.delete(apiServiceBindings, { name: 'db' });
    await whenGone('db');
    assert.equal(await stage.copy(db(), row('first')), undefined);
    await stage.create(dbProd(), { name: 'second' });
    await stage.whenSynced(dbProd(), { name: 'second' });
    assert.equal(await starts(dbProd()), 1);
  });

  it('end independently: the longer name', async () => {
    const { consumer } = stage.side;
    await consumer.bind('db', secret);
    await consumer.whenCondition('db', 'Ready');
    await stage.create(db(), row('third'));
    await stage.whenSynced(db(), row('third'));
    const before = await starts(db());
    await stage.side.backend.withdraw('db-prod');
    await consumer.whenCondition('db-prod', 'Connected', 'False', { reason: 'APIServiceExportNotFound' });
    await consumer.client.delete(apiServiceBindings, { name: 'db-prod' });
    await whenGone('db-prod');
    await stage.create(db(), row('fourth'));
    await stage.whenSynced(db(), row('fourth'));
    assert.equal(await starts(db()), before);
    await consumer.whenCondition('db', 'Ready');
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
