import assert from 'node:assert/strict';
import { ApiError } from '../../../../src/kube/errors.ts';
import { answer, done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';
import type { MemoryInventory } from '../../../support/inventory/memory-stores.ts';

const refusal = new ApiError(422, 'Invalid', 'spec.lastOutcome.missing[0].value: Invalid value');

/** Rejects every swap except the first, which starts the run, until `refused` is false. */
function refuseSwaps(inventory: MemoryInventory): { tried: number; refused: boolean } {
  const swaps = { tried: 0, refused: true };
  inventory.fault = (operation, when) =>
    operation === 'run.swap' && when === 'before' && ++swaps.tried > 1 && swaps.refused ? refusal : undefined;
  return swaps;
}

describe('a record that the API server rejects', () => {
  it('is retried with backoff, shows in the status, and is stored once it is accepted', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Done', message: 'fine' }),
    });
    const swaps = refuseSwaps(inventory);
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(600_000);
    assert.ok(swaps.tried < 800, `${swaps.tried} tries in 10 minutes`);
    const [row] = inventory.entry(ref)?.components ?? [];
    assert.equal(row?.state, 'Failed');
    assert.equal(row.reason, 'NotStored');
    const key = { entryUid: ref.uid, component: 'network' };
    assert.equal(inventory.record(key)?.record.phase, 'Running');
    swaps.refused = false;
    await clock.advance(60_000);
    const record = inventory.record(key)?.record;
    assert.equal(record?.phase, 'Idle');
    assert.equal(record.credentialId, undefined);
    assert.equal(record.lastOutcome?.outcome, 'Done');
    assert.equal(inventory.entry(ref)?.components[0]?.state, 'Done');
    assert.equal(manager.calls.length, 1);
  });

  it('prevents the publication of its outputs after another replica wrote first', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], {
      network: () => done({ network: { vnet: 'late' } }),
    });
    const other = inventory.open();
    let swaps = 0;
    inventory.fault = async (operation, when) => {
      if (operation !== 'run.swap' || when !== 'before' || ++swaps !== 2) return undefined;
      const [stored] = inventory.records();
      assert.ok(stored);
      const deadlineMs = clock.now() + 600_000;
      const next = { ...stored.record, seq: stored.record.seq + 1, credentialId: 'of-the-other', deadlineMs };
      await other.runs.swap(next, stored, new AbortController().signal);
      return undefined;
    };
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    assert.equal(inventory.records()[0]?.record.credentialId, 'of-the-other');
    assert.deepEqual(inventory.entry(ref)?.content.status.outputs, {});
    other.close();
  });

  it('does not replace a newer one', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', leaseSeconds: 60 }], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 60_000 }),
    });
    const swaps = refuseSwaps(inventory);
    const { ref } = inventory.create({ name: 'one' });
    const row = () => inventory.entry(ref)?.components[0];
    // The 202 could not be stored; the next retry is seconds away.
    for (let ms = 0; row()?.reason !== 'NotStored' && ms < 60_000; ms += 100) await clock.advance(100);
    assert.equal(row()?.reason, 'NotStored');
    swaps.refused = false;
    assert.equal((await manager.report(manager.calls[0], { outcome: 'Done' })).status, 200);
    await clock.advance(50_000);
    const { record } = inventory.records()[0] ?? {};
    assert.deepEqual([record?.phase, record?.lastOutcome?.outcome, row()?.state], ['Idle', 'Done', 'Done']);
  });

  it('is not retried after its entry was deleted', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], { network: () => done() });
    const swaps = refuseSwaps(inventory);
    const { ref } = inventory.create({ name: 'one' });
    for (let ms = 0; inventory.entry(ref)?.components[0]?.reason !== 'NotStored' && ms < 60_000; ms += 100) {
      await clock.advance(100);
    }
    inventory.deleteByForce(ref);
    const before = swaps.tried;
    await clock.advance(600_000);
    assert.equal(swaps.tried, before);
  });

  it('does not prevent the abandonment of its component', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], { network: () => done() });
    refuseSwaps(inventory);
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(60_000);
    inventory.delete(ref);
    inventory.annotate(ref, { 'abandon.inventory.drawbridge.dev/network': 'broken' });
    await clock.advance(60_000);
    assert.equal(inventory.entry(ref), undefined);
  });
});
