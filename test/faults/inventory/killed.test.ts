import assert from 'node:assert/strict';
import { runId } from '../../../src/inventory/key.ts';
import { killInFlight } from '../../support/inventory/killed.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';

describe('a manager that is killed', function () {
  this.timeout(180_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  after(async () => stage?.close());

  it('leaves the inventory readable and writable, and handles missed changes when it is back', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done', outputs: { network: { up: true } } }));
    const { ref } = await stage.entry('one');
    await stage.ready('one');
    await stage.server.stop('SIGKILL');
    await stage.patch('one', { spec: { components: { network: { config: { size: 2 } } } } });
    await stage.entry('two');
    assert.deepEqual((await stage.get('one')).content.status.outputs, { network: { up: true } });
    const before = network.callsFor(ref.uid).length;
    await stage.server.begin();
    await stage.ready('one', 'two');
    assert.equal(network.callsFor(ref.uid).length, before + 1);
    await stage.clear();
  });

  it('with 200 runs in flight loses none, doubles none, and soon becomes consistent', async () => {
    const { backMs, runs, called } = await killInFlight(stage, 40);
    console.log(`      from the restart until all ${runs} are Done: ${backMs.toFixed(0)} ms`);
    assert.ok(backMs < 30_000, `${backMs} ms`);
    assert.equal(new Set(called).size, called.length, 'no run is called twice');
    const records = await stage.records();
    assert.equal(records.length, runs);
    for (const { entry, component, seq, phase, credentialId, lastOutcome } of records) {
      assert.deepEqual([phase, credentialId, lastOutcome?.outcome], ['Idle', undefined, 'Done']);
      const id = runId({ entryUid: entry.uid, component }, seq);
      assert.ok(called.includes(id), `${id} was called`);
    }
  });
});
