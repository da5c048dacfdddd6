import assert from 'node:assert/strict';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('a run with an unknown kind of reply', () => {
  it('ends at its deadline', async () => {
    let calls = 0;
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
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
    await manager.stop();
  });
});
