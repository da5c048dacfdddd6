import assert from 'node:assert/strict';
import { answer, type Behavior } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const minute = 60_000;
const metric = 'drawbridge_inventory_watch_relists_total';
const region = '/spec/cluster/region';

const willing: Behavior = ({ operation }) => answer({ outcome: operation === 'delete' ? 'Deleted' : 'Done' });

async function stage() {
  const registered = [{ name: 'network', reads: [region] }, { name: 'other' }];
  const staged = await memoryStage(registered, { network: willing, other: willing });
  const { ref } = staged.inventory.create({ name: 'one' });
  await staged.clock.advance(1_000);
  return { ...staged, ref };
}

describe('a change without a watch event', () => {
  it('causes one run within 33 minutes', async () => {
    const { clock, inventory, manager, ref } = await stage();
    manager.stores.unheard(() => {
      inventory.setSpec(ref, { cluster: { region: 'westeurope' } });
    });
    await clock.advance(26 * minute);
    assert.equal(manager.calls.length, 2);
    await clock.advance(7 * minute);
    assert.deepEqual(
      manager.calls.slice(2).map(({ component, run }) => [component, run.reasons]),
      [['network', ['InputChanged']]],
    );
    assert.equal((await manager.metric(metric)).get('{cause="periodic"}'), 1);
  });

  it('is found even if it is a new or a deleted entry', async () => {
    const { clock, inventory, manager, ref } = await stage();
    manager.stores.unheard(() => {
      inventory.create({ name: 'two' });
      inventory.delete(ref);
    });
    await clock.advance(33 * minute);
    assert.deepEqual(
      manager.calls.slice(2).map(({ entry, operation }) => [entry.id === ref.uid, operation]),
      [
        [true, 'delete'],
        [true, 'delete'],
        [false, 'reconcile'],
        [false, 'reconcile'],
      ],
    );
  });
});

describe('the periodic resync', () => {
  it('does and writes nothing if no event was missed', async () => {
    const { clock, inventory, manager, ref } = await stage();
    for (let n = 0; n < 120; n++) inventory.create({ name: `more${n}` });
    await clock.advance(5_000);
    const calls = manager.calls.length;
    const { resourceVersion } = inventory.edit(ref, ({ metadata }) => {
      metadata.labels = { latest: 'true' };
    });
    await clock.advance(40 * minute);
    assert.equal((await manager.metric(metric)).get('{cause="periodic"}'), 1);
    assert.equal(manager.calls.length, calls);
    const next = inventory.edit(ref, ({ metadata }) => {
      metadata.labels = {};
    });
    assert.equal(Number(next.resourceVersion), Number(resourceVersion) + 1);
  });

  it('ends with the manager', async () => {
    const { clock, manager } = await stage();
    await manager.stop();
    await clock.advance(60 * minute);
    assert.equal((await manager.metric(metric)).get('{cause="periodic"}'), undefined);
  });
});
