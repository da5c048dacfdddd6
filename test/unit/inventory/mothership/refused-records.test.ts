import assert from 'node:assert/strict';
import { ApiError } from '../../../../src/kube/errors.ts';
import { answer, done } from '../../../support/inventory/memory-mothership.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const refusal = new ApiError(422, 'Invalid', 'spec.lastOutcome.missing[0].value: Invalid value');

describe('a record that the API server does not take', () => {
  it('is tried less and less often, shows, and is stored once it is taken', async () => {
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Done', message: 'fine' }),
    });
    let swaps = 0;
    let refused = true;
    inventory.fault = (operation, when) =>
      operation === 'run.swap' && when === 'before' && ++swaps > 1 && refused ? refusal : undefined;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(600_000);
    assert.ok(swaps < 800, `${swaps} tries in 10 minutes`);
    const [row] = inventory.entry(ref)?.components ?? [];
    assert.equal(row?.state, 'Failed');
    assert.equal(row.reason, 'NotStored');
    const key = { entryUid: ref.uid, component: 'network' };
    assert.equal(inventory.record(key)?.record.phase, 'Running');
    refused = false;
    await clock.advance(60_000);
    const record = inventory.record(key)?.record;
    assert.equal(record?.phase, 'Idle');
    assert.equal(record.credentialId, undefined);
    assert.equal(record.lastOutcome?.outcome, 'Done');
    assert.equal(inventory.entry(ref)?.components[0]?.state, 'Done');
    assert.equal(ship.calls.length, 1);
    await ship.stop();
  });

  it('is stored without what the component said where that is at fault', async () => {
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Failed', message: 'hostile' }),
    });
    let first = true;
    let refusals = 0;
    inventory.fault = (operation, when) => {
      if (operation !== 'run.swap' || when !== 'before') return undefined;
      const isStart = first;
      first = false;
      return !isStart && ++refusals <= 5 ? refusal : undefined;
    };
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(30_000);
    const record = inventory.record({ entryUid: ref.uid, component: 'network' })?.record;
    assert.equal(record?.phase, 'Idle');
    assert.equal(record.lastOutcome?.outcome, 'Failed');
    assert.equal(record.lastOutcome.reason, 'NotStored');
    assert.match(record.lastOutcome.message ?? '', /Invalid value/);
    await ship.stop();
  });

  it('keeps nobody from abandoning its component', async () => {
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: () => done(),
    });
    let swaps = 0;
    inventory.fault = (operation, when) =>
      operation === 'run.swap' && when === 'before' && ++swaps > 1 ? refusal : undefined;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(60_000);
    inventory.delete(ref);
    inventory.edit(ref, ({ metadata }) => {
      metadata.annotations = { 'abandon.inventory.drawbridge.dev/network': 'broken' };
    });
    await clock.advance(60_000);
    assert.equal(inventory.entry(ref), undefined);
    await ship.stop();
  });
});
