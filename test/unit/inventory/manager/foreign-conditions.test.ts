import assert from 'node:assert/strict';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { stageWithEntry } from '../../../support/inventory/memory-stage.ts';

describe('a condition of another writer', () => {
  it('is kept by a status write that precedes its watch event', async () => {
    const outcome = Promise.withResolvers<Reply>();
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: () => outcome.promise,
    });
    manager.stores.pause();
    inventory.edit(ref, ({ status = {} }) => {
      status.conditions = [
        ...(status.conditions ?? []),
        {
          type: 'BackedUp',
          status: 'True',
          reason: 'Nightly',
          message: '',
          lastTransitionTime: '2026-11-21T09:00:00Z',
        },
      ];
    });
    outcome.resolve(done());
    await clock.advance(1000);
    manager.stores.resume();
    await clock.advance(1000);
    const conditions = inventory.entry(ref)?.conditions.map(({ type, status }) => [type, status]);
    assert.deepEqual(conditions?.sort(), [
      ['BackedUp', 'True'],
      ['Ready', 'True'],
    ]);
  });
});
