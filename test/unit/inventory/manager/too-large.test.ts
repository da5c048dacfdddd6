import assert from 'node:assert/strict';
import { maxEntryBytes } from '../../../../src/api/inventory/names.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import type { MemoryInventory } from '../../../support/inventory/memory-stores.ts';

/** Sets the size of entry `one`, bytes. */
function fill(inventory: MemoryInventory, bytes: number): void {
  const pad = (length: number): number => {
    inventory.setSpec({ name: 'one' }, { cluster: { note: 'x'.repeat(length) } });
    return inventory.entry({ name: 'one' })?.bytes ?? 0;
  };
  pad(bytes - pad(0));
  assert.equal(inventory.entry({ name: 'one' })?.bytes, bytes);
}

const ready = (inventory: MemoryInventory) =>
  inventory.entry({ name: 'one' })?.conditions.find(({ type }) => type === 'Ready');

describe('an entry that is too large', () => {
  it('is not run, reports its size and the limit, and runs once it is small enough', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', reads: ['/spec/cluster/note'] }]);
    const { ref } = inventory.create({ name: 'one', spec: { suspend: true } });
    await clock.advance(1000);
    fill(inventory, maxEntryBytes + 1_001);
    inventory.setSpec(ref, { suspend: false });
    await clock.advance(3_600_000);
    assert.equal(manager.calls.length, 0);
    const bytes = inventory.entry(ref)?.bytes ?? 0;
    assert.ok(bytes > maxEntryBytes);
    assert.deepEqual([ready(inventory)?.status, ready(inventory)?.reason], ['False', 'TooLarge']);
    assert.match(
      ready(inventory)?.message ?? '',
      new RegExp(`^the entry has \\d+ bytes; at most ${maxEntryBytes} are allowed`),
    );
    const [row] = inventory.entry(ref)?.components ?? [];
    assert.deepEqual([row?.state, row?.reason], ['Failed', 'TooLarge']);
    assert.ok(([...(await manager.metric('drawbridge_inventory_entry_bytes')).values()][0] ?? 0) > maxEntryBytes);
    inventory.setSpec(ref, { cluster: { note: 'short' } });
    await clock.advance(1000);
    assert.equal(manager.calls.length, 1);
    assert.equal(ready(inventory)?.status, 'True');
  });

  it('begins one byte above the limit', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([
      { name: 'network', reads: ['/spec/cluster/note'] },
    ]);
    // Later runs do not change the status, so the size stays the same.
    fill(inventory, maxEntryBytes + 1);
    await clock.advance(1);
    assert.equal(manager.calls.length, 1);
    fill(inventory, maxEntryBytes);
    await clock.advance(1000);
    assert.equal(manager.calls.length, 2);
    inventory.setSpec(ref, { cluster: { note: 'short' } });
    await clock.advance(1000);
    assert.equal(manager.calls.length, 3);
  });

  it('is still torn down', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) => ({
        kind: 'outcome',
        outcome: { outcome: operation === 'delete' ? 'Deleted' : 'Done' },
      }),
    });
    fill(inventory, maxEntryBytes + 1);
    inventory.delete(ref);
    await clock.advance(2000);
    assert.equal(inventory.entry(ref), undefined);
    assert.equal(manager.callsOf('network').at(-1)?.operation, 'delete');
  });
});
