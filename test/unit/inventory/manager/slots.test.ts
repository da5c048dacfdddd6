import assert from 'node:assert/strict';
import { Limits } from '../../../../src/inventory/manager/limits.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';

describe('slots', () => {
  /** One slot, which `a` has; `b` and `c` wait for it. */
  function oneSlot() {
    const registration = registrationOf('network', { maxConcurrent: 1 });
    const poked: string[] = [];
    const deleted = new Set<string>();
    const limits = new Limits({
      registrations: { get: () => registration, all: () => [registration], problem: () => undefined },
      authorizationProved: () => true,
      isPrepared: () => true,
      breakerAdmits: () => true,
      onUnreachable: () => undefined,
      laneOf: (text) => (deleted.has(text) ? undefined : 1),
      wake: (keys = []) => void poked.push(...keys),
    });
    assert.deepEqual(
      ['a', 'b', 'c'].map((entry) => limits.admit(`${entry}/network`)),
      [true, false, false],
    );
    return { limits, poked, deleted };
  }

  it('go to a waiting key, not to an adopted run', () => {
    const { limits, poked } = oneSlot();
    limits.acquire({ entryUid: 'b', component: 'network' });
    limits.release('b/network');
    limits.release('a/network');
    assert.ok(poked.length > 0);
    assert.deepEqual(new Set(poked), new Set(['c/network']));
  });

  it('of a run that another process ended are not used for the next run', () => {
    const { limits, poked } = oneSlot();
    limits.acquire({ entryUid: 'b', component: 'network' });
    assert.equal(limits.admit('b/network'), false);
    limits.release('a/network');
    assert.deepEqual(poked, ['c/network', 'b/network']);
  });

  it('go to a waiting key, not to that of a deleted entry', () => {
    const { limits, poked, deleted } = oneSlot();
    deleted.add('b/network');
    limits.drop({ entryUid: 'b', component: 'network' });
    assert.deepEqual(poked, ['b/network']);
    assert.equal(limits.admit('b/network'), true);
    limits.release('a/network');
    assert.deepEqual(poked, ['b/network', 'c/network']);
    assert.equal(limits.admit('c/network'), true);
  });

  it('of ended asynchronous runs go to keys in a more urgent lane', async () => {
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'network', maxConcurrent: 1, reads: ['/status/outputs/other'] }],
      { network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 30_000 }) },
    );
    const { ref: first } = inventory.create({ name: 'first' });
    await clock.advance(1000);
    const { ref: second } = inventory.create({ name: 'second' });
    inventory.setOutputs(first, { other: { value: 1 } });
    await clock.advance(1000);
    assert.equal((await manager.report(manager.calls[0], { outcome: 'Done' })).status, 200);
    await clock.advance(1000);
    const called = manager.calls.map(({ entry }) => entry.id);
    assert.deepEqual(called, [first.uid, second.uid]);
  });

  it('stay taken by an active call whose entry was deleted', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', maxConcurrent: 1 }], {
      network: async (_request, signal) => {
        await sleep(clock, 3000, signal);
        return done();
      },
    });
    const { ref: first } = inventory.create({ name: 'first' });
    await clock.advance(1000);
    inventory.create({ name: 'second' });
    // Forced removal: nothing waits for the call.
    inventory.deleteByForce(first);
    await clock.advance(1000);
    assert.equal(inventory.entry(first), undefined);
    assert.equal(manager.calls.length, 1);
    await clock.advance(1500);
    assert.equal(manager.calls.length, 2);
  });
});

describe('keys of deleted entries', () => {
  it('leave the queue', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? { kind: 'accepted', heartbeatTimeoutMs: 60_000 } : done()),
    });
    for (let i = 0; i < 5; i++) {
      const { ref } = inventory.create({ name: `e${i}` });
      await clock.advance(1000);
      inventory.delete(ref);
      await clock.advance(1000);
      assert.equal((await manager.report(manager.calls.at(-1), { outcome: 'Deleted' })).status, 200);
      await clock.advance(1000);
      assert.equal(inventory.entry(ref), undefined);
    }
    await clock.advance(3_600_000);
    const depths = await manager.metric('workqueue_depth');
    assert.equal(depths.get('{name="inventory-runs",controller="inventory-runs"}'), 0);
  });
});
