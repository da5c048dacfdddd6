import assert from 'node:assert/strict';
import { Limits } from '../../../../src/inventory/manager/limits.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';

describe('keys of deleted entries', () => {
  it('leave the queue', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? { kind: 'accepted', heartbeatTimeoutMs: 60_000 } : done()),
    });
    for (let i = 0; i < 5; i++) {
      const { ref } = inventory.create({ name: `e${i}` });
      const run = { entryUid: ref.uid, component: 'network', seq: 2 };
      await clock.advance(1000);
      inventory.delete(ref);
      await clock.advance(1000);
      const body = { run: `${ref.uid}.network.2`, outcome: 'Deleted' };
      const reportAnswer = await manager.manager.reports.report(
        run,
        inventory.record(run)?.record.credentialId ?? '',
        body,
      );
      assert.equal(reportAnswer.status, 200);
      await clock.advance(1000);
      assert.equal(inventory.entry(ref), undefined);
    }
    await clock.advance(3_600_000);
    const depths = await manager.metric('workqueue_depth');
    assert.equal(depths.get('{name="inventory-runs",controller="inventory-runs"}'), 0);
  });

  it('take no slot from waiting keys', () => {
    const there = new Set(['a/network', 'b/network', 'c/network']);
    const poked: string[] = [];
    const limits = new Limits({
      registrations: {
        get: () => registrationOf('network', { maxConcurrent: 1 }),
        all: () => [],
        problem: () => undefined,
      },
      authorizationProved: () => true,
      isPrepared: () => true,
      breakerAdmits: () => true,
      onUnreachable: () => undefined,
      laneOf: (text) => (there.has(text) ? 2 : undefined),
      wake: (keys = []) => void poked.push(...keys),
    });
    assert.equal(limits.admit('a/network'), true);
    assert.equal(limits.admit('b/network'), false);
    assert.equal(limits.admit('c/network'), false);
    there.delete('b/network');
    limits.drop({ entryUid: 'b', component: 'network' });
    assert.deepEqual(poked, ['b/network']);
    assert.equal(limits.admit('b/network'), true);
    limits.release('a/network');
    assert.deepEqual(poked, ['b/network', 'c/network']);
    assert.equal(limits.admit('c/network'), true);
  });
});
