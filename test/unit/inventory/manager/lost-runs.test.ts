import assert from 'node:assert/strict';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('a run whose call comes to nothing', () => {
  it('is over with its lease when the client answers what is no answer', async () => {
    let calls = 0;
    const { clock, inventory, ship } = await memoryStage([{ name: 'network' }], {
      network: () => {
        calls += 1;
        return calls === 1 ? ('nothing' as unknown as Reply) : done();
      },
    });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(60_000);
    const record = inventory.record({ entryUid: ref.uid, component: 'network' })?.record;
    assert.equal(record?.phase, 'Idle');
    assert.equal(record.lastOutcome?.outcome, 'Done');
    assert.equal(calls, 2);
    await ship.stop();
  });
});
