import assert from 'node:assert/strict';
import { answer, done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('runs that leave no record behind', () => {
  it('are counted when everything is deleted', async () => {
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? answer({ outcome: 'Deleted' }) : done()),
    });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    inventory.delete(ref);
    await clock.advance(2000);
    assert.equal(inventory.entry(ref), undefined);
    const runs = [...(await ship.metric('drawbridge_inventory_runs_total'))].filter(([, count]) => count > 0);
    assert.deepEqual(
      runs.map(([labels, count]) => [/outcome="(\w+)"/.exec(labels)?.[1], count]),
      [
        ['Done', 1],
        ['Deleted', 1],
      ],
    );
    await ship.stop();
  });

  it('are counted when their component is abandoned', async () => {
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? { kind: 'accepted', leaseMs: 60_000 } : done()),
    });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    inventory.delete(ref);
    await clock.advance(1000);
    inventory.edit(ref, ({ metadata }) => {
      metadata.annotations = { 'abandon.inventory.drawbridge.dev/network': 'lost' };
    });
    await clock.advance(2000);
    assert.equal(inventory.entry(ref), undefined);
    const runs = await ship.metric('drawbridge_inventory_runs_total');
    assert.equal(runs.get('{component="network",outcome="Retry",reason="Abandoned"}'), 1, JSON.stringify([...runs]));
    await ship.stop();
  });
});
