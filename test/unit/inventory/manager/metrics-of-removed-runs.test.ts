import assert from 'node:assert/strict';
import { answer, done } from '../../../support/inventory/in-memory-manager.ts';
import { stageWithEntry } from '../../../support/inventory/memory-stage.ts';

describe('metrics of runs whose records are removed', () => {
  it('count runs that end with Deleted', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? answer({ outcome: 'Deleted' }) : done()),
    });
    inventory.delete(ref);
    await clock.advance(2000);
    assert.equal(inventory.entry(ref), undefined);
    const runs = [...(await manager.metric('drawbridge_inventory_runs_total'))].filter(([, count]) => count > 0);
    assert.deepEqual(
      runs.map(([labels, count]) => [/outcome="(\w+)"/.exec(labels)?.[1], count]),
      [
        ['Done', 1],
        ['Deleted', 1],
      ],
    );
  });

  it('count runs of abandoned components', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? { kind: 'accepted', heartbeatTimeoutMs: 60_000 } : done()),
    });
    inventory.delete(ref);
    await clock.advance(1000);
    inventory.annotate(ref, { 'abandon.inventory.drawbridge.dev/network': 'lost' });
    await clock.advance(2000);
    assert.equal(inventory.entry(ref), undefined);
    const runs = await manager.metric('drawbridge_inventory_runs_total');
    assert.equal(runs.get('{component="network",outcome="Retry",reason="Abandoned"}'), 1, JSON.stringify([...runs]));
  });
});
