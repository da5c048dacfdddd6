import assert from 'node:assert/strict';
import { Limits } from '../../../../src/inventory/manager/limits.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { done, InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { MemoryRegistrations } from '../../../support/inventory/memory-registrations.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';
import { MemoryInventory } from '../../../support/inventory/memory-stores.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('slots', () => {
  it('go to a waiting key, not to an adopted run', () => {
    const registration = registrationOf('network', { maxConcurrent: 1 });
    const poked: string[] = [];
    const limits = new Limits({
      registrations: { get: () => registration, all: () => [registration], problem: () => undefined },
      authorizationProved: () => true,
      isPrepared: () => true,
      breakerAdmits: () => true,
      onUnreachable: () => undefined,
      laneOf: () => 1,
      wake: (keys = []) => void poked.push(...keys),
    });
    assert.equal(limits.admit('a/network'), true);
    assert.equal(limits.admit('b/network'), false);
    assert.equal(limits.admit('c/network'), false);
    limits.acquire({ entryUid: 'b', component: 'network' });
    limits.release('b/network');
    limits.release('a/network');
    assert.ok(poked.length > 0);
    assert.deepEqual(new Set(poked), new Set(['c/network']));
  });

  it('of ended asynchronous runs go to keys in a more urgent lane', async () => {
    const clock = new SimulatedClock();
    const inventory = new MemoryInventory();
    const registrations = new MemoryRegistrations(clock, [
      { name: 'network', maxConcurrent: 1, reads: ['/status/outputs/other'] },
    ]);
    const network = () => ({ kind: 'accepted', heartbeatTimeoutMs: 30_000 }) as const;
    const components = { network };
    const manager = new InMemoryManager({ clock, inventory, registrations, random: () => 0.5, components }).start();
    try {
      const { ref: first } = inventory.create({ name: 'first' });
      await clock.advance(1000);
      const { ref: second } = inventory.create({ name: 'second' });
      inventory.edit(first, (object) => {
        object.status = { outputs: { other: { value: 1 } } };
      });
      await clock.advance(1000);
      const run = { entryUid: first.uid, component: 'network', seq: 1 };
      const report = { run: `${first.uid}.network.1`, outcome: 'Done' };
      assert.equal((await manager.manager.reports.report(run, 'm-1', report)).status, 200);
      await clock.advance(1000);
      const called = manager.calls.map(({ entry }) => entry.id);
      assert.deepEqual(called, [first.uid, second.uid]);
    } finally {
      await manager.stop();
    }
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
    inventory.edit(first, ({ metadata }) => {
      metadata.finalizers = [];
      metadata.deletionTimestamp = '2026-11-21T10:00:00Z';
    });
    await clock.advance(1000);
    assert.equal(inventory.entry(first), undefined);
    assert.equal(manager.calls.length, 1);
    await clock.advance(1500);
    assert.equal(manager.calls.length, 2);
  });
});
