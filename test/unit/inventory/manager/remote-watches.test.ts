import assert from 'node:assert/strict';
import { answer, type Behavior, done } from '../../../support/inventory/in-memory-manager.ts';
import type { RegistrationSeed } from '../../../support/inventory/memory-registrations.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const minute = 60_000;
const watch = { cluster: 'managed', group: 'services.test', version: 'v1', resource: 'instances', fields: 'spec' };
const proxy: RegistrationSeed = { name: 'proxy', remoteWatches: [watch] };
const other: RegistrationSeed = { name: 'other' };
const condition = 'RemoteWatchHealthy';

/** Two entries after their first run; `called` contains the reasons of later calls for the first one. */
async function stage(registered: readonly RegistrationSeed[], components: Readonly<Record<string, Behavior>> = {}) {
  const staged = await memoryStage(registered, components);
  const { clock, inventory, manager } = staged;
  const { ref } = inventory.create({ name: 'one' });
  const two = inventory.create({ name: 'two' }).ref;
  await clock.advance(1_000);
  const before = manager.calls.length;
  const called = (component: string): string[] =>
    manager.calls
      .slice(before)
      .filter((call) => call.component === component && call.entry.id === ref.uid)
      .map(({ run }) => run.reasons.join());
  const health = (): string | undefined => {
    const found = inventory.entry(ref)?.conditions.find(({ type }) => type === condition);
    return found && `${found.status} ${found.reason} ${found.message}`.trim();
  };
  return { ...staged, ref, two, called, health, before };
}

describe('remote watches', () => {
  it('are opened for the entries of the components that declare them', async () => {
    const { manager, ref, two } = await stage([proxy, other]);
    assert.deepEqual([...manager.remote.wanted.keys()], [ref.uid, two.uid]);
    assert.deepEqual(
      manager.remote.wanted.get(ref.uid)?.map(({ component }) => component),
      ['proxy'],
    );
  });

  it('trigger only that component of that entry', async () => {
    const { clock, manager, ref, before } = await stage([proxy, other]);
    manager.remote.event({ entryUid: ref.uid, component: 'proxy', detail: 'managed/instances.services.test' });
    await clock.advance(1_000);
    const [call, ...more] = manager.calls.slice(before);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [call?.entry.id, call?.component, call?.run.reasons],
      [ref.uid, 'proxy', ['Remote:managed/instances.services.test']],
    );
  });

  it('are ignored for a deleted entry', async () => {
    const { clock, manager } = await stage([proxy]);
    const triggers = async () => [...(await manager.metric('drawbridge_inventory_triggers_total')).values()];
    const before = await triggers();
    manager.remote.event({ entryUid: 'gone', component: 'proxy', detail: 'managed/instances.services.test' });
    await clock.advance(1_000);
    assert.deepEqual(await triggers(), before);
  });

  it('show their health in the condition RemoteWatchHealthy', async () => {
    const { clock, inventory, manager, ref, two, health } = await stage([proxy, other]);
    assert.equal(health(), 'True Watching');
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(1_000);
    assert.equal(health(), 'False NotWatching silent for a minute');
    assert.equal(inventory.entry(two)?.conditions.find(({ type }) => type === condition)?.status, 'True');
    assert.equal(inventory.entry(ref)?.conditions.find(({ type }) => type === 'Ready')?.status, 'True');
    manager.remote.health(ref.uid, undefined);
    await clock.advance(1_000);
    assert.equal(health(), 'True Watching');
  });
});

describe('while remote watches are unhealthy', () => {
  it('components with watches run every five minutes, and others as before', async () => {
    const { clock, manager, ref, two, called } = await stage([proxy, other]);
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(5 * minute - 1);
    assert.deepEqual(called('proxy'), []);
    await clock.advance(1 + 5 * minute + 100);
    assert.deepEqual(called('proxy'), ['Remote:unwatched', 'Remote:unwatched']);
    await clock.advance(15 * minute);
    assert.equal(called('proxy').length, 5);
    assert.deepEqual(called('other'), []);
    assert.ok(manager.calls.slice(4).every(({ entry }) => entry.id !== two.uid));
    manager.remote.health(ref.uid, undefined);
    await clock.advance(30 * minute);
    assert.equal(called('proxy').length, 5);
  });

  it('any run postpones the next one', async () => {
    const { clock, manager, ref, called } = await stage([proxy]);
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(4 * minute);
    manager.remote.event({ entryUid: ref.uid, component: 'proxy', detail: 'managed/instances.services.test' });
    await clock.advance(4 * minute);
    assert.equal(called('proxy').length, 1);
    await clock.advance(minute + 100);
    assert.equal(called('proxy').length, 2);
  });

  it('a shorter interval is kept', async () => {
    const { clock, manager, ref, called } = await stage([{ ...proxy, intervalSeconds: 60 }]);
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(10 * minute);
    assert.deepEqual(
      called('proxy'),
      Array.from({ length: 10 }, () => 'Interval'),
    );
  });

  it('Failed components and those that watch another cluster do not run earlier', async () => {
    const { clock, manager, ref, called } = await stage(
      [proxy, { name: 'manager', remoteWatches: [{ ...watch, cluster: 'management' }] }],
      { proxy: () => answer({ outcome: 'Failed' }), manager: () => done() },
    );
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(40 * minute);
    assert.deepEqual([called('proxy'), called('manager')], [[], []]);
  });

  it('a deleted entry is not run', async () => {
    const { clock, inventory, manager, ref } = await stage([proxy], {
      proxy: ({ operation }) => answer({ outcome: operation === 'delete' ? 'Deleted' : 'Done' }),
    });
    manager.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(1_000);
    inventory.delete(ref);
    await clock.advance(5_000);
    assert.equal(inventory.entry(ref), undefined);
    const before = manager.calls.length;
    await clock.advance(20 * minute);
    assert.equal(manager.calls.length, before);
    assert.equal(manager.remote.wanted.has(ref.uid), false);
  });
});
