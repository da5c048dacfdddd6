import assert from 'node:assert/strict';
import { done, notReady } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const minute = 60_000;
const metric = 'drawbridge_inventory_notready_entries';
const vnet = '/status/outputs/network/vnetName';

describe('the metric of entries that wait for an input', () => {
  it('counts from the start of the wait across repeated runs, until the input arrives', async () => {
    let isThere = false;
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'cluster', reads: [vnet], notReadyAlertAfterSeconds: 900 }],
      { cluster: () => (isThere ? done() : notReady(vnet)) },
    );
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(14 * minute);
    assert.ok(manager.calls.length > 1);
    assert.deepEqual([...(await manager.metric(metric))], []);
    await clock.advance(2 * minute);
    assert.deepEqual([...(await manager.metric(metric))], [[`{component="cluster",path="${vnet}"}`, 1]]);
    isThere = true;
    inventory.setOutputs(ref, { network: { vnetName: 'v' } });
    await clock.advance(1000);
    assert.deepEqual([...(await manager.metric(metric))], []);
    // The component waits again.
    isThere = false;
    inventory.setOutputs(ref, {});
    await clock.advance(14 * minute);
    assert.deepEqual([...(await manager.metric(metric))], []);
  });

  it('counts an entry once that waits for several paths that no registration reads', async () => {
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'cluster', reads: [], notReadyAlertAfterSeconds: 900 }],
      { cluster: () => notReady(vnet, '/status/outputs/network/vnetId') },
    );
    inventory.create({ name: 'one' });
    await clock.advance(16 * minute);
    assert.deepEqual([...(await manager.metric(metric))], [['{component="cluster",path="other"}', 1]]);
  });

  it('counts from the start of the wait also while the component works on it and after it answered 202', async () => {
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'cluster', reads: [vnet], notReadyAlertAfterSeconds: 900 }],
      { cluster: () => ({ kind: 'accepted', heartbeatTimeoutMs: 120_000 }) },
    );
    const { ref } = inventory.create({ name: 'one' });
    let counted = 0;
    for (let minutes = 0; minutes < 30; minutes += 1) {
      await clock.advance(minute);
      if ((await manager.metric(metric)).size > 0) counted += 1;
      if (inventory.records()[0]?.record.phase !== 'Running') continue;
      assert.equal(inventory.entry(ref)?.components[0]?.reason, 'Running');
      const outcome = { outcome: 'NotReady', missing: [{ path: vnet, want: 'present' }] };
      assert.equal((await manager.report(manager.calls.at(-1), outcome)).status, 200);
    }
    assert.ok(manager.calls.length > 2);
    assert.equal(counted, 15, 'from the sixteenth minute');
  });
});
