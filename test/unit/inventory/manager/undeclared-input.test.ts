import assert from 'node:assert/strict';
import { done, notReady } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('a missing input that the registration does not declare as read', () => {
  for (const nth of [1, 2]) {
    it(`triggers the component if it arrives while the outcome is being stored (${nth})`, async () => {
      let isThere = false;
      const { clock, inventory, manager } = await memoryStage([{ name: 'waiter' }], {
        waiter: () => (isThere ? done() : notReady('/spec/cluster/region')),
      });
      const { ref } = inventory.create({ name: 'one' });
      let swaps = 0;
      // The first write stores the start, the second the outcome.
      inventory.fault = (operation, when) => {
        if (operation !== 'run.swap' || when !== (nth === 1 ? 'before' : 'after') || ++swaps !== 2) return undefined;
        isThere = true;
        inventory.setSpec(ref, { cluster: { region: 'westeurope' } });
        return undefined;
      };
      await clock.advance(2_000);
      assert.equal(manager.calls.length, 2);
      assert.match(manager.calls[1]?.run.reasons.join() ?? '', /InputArrived/);
    });
  }
});
