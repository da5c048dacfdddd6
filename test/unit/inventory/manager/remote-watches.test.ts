import assert from 'node:assert/strict';
import { answer, type Behaviour, done } from '../../../support/inventory/in-memory-manager.ts';
import type { RegistrationSeed } from '../../../support/inventory/memory-registrations.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const minute = 60_000;
const watch = { cluster: 'managed', group: 'services.test', version: 'v1', resource: 'instances', fields: 'spec' };
const proxy: RegistrationSeed = { name: 'proxy', remoteWatches: [watch] };
const other: RegistrationSeed = { name: 'other' };
const condition = 'RemoteWatchHealthy';

/** Two entries that have run once; `called` has the reasons of what is called for the first one from then on. */
async function stage(registered: readonly RegistrationSeed[], components: Readonly<Record<string, Behaviour>> = {}) {
  const staged = await memoryStage(registered, components);
  const { clock, inventory, ship } = staged;
  const { ref } = inventory.create({ name: 'one' });
  const two = inventory.create({ name: 'two' }).ref;
  await clock.advance(1_000);
  const before = ship.calls.length;
  const called = (component: string): string[] =>
    ship.calls
      .slice(before)
      .filter((call) => call.component === component && call.entry.id === ref.uid)
      .map(({ run }) => run.reasons.join());
  const health = (): string | undefined => {
    const found = inventory.entry(ref)?.conditions.find(({ type }) => type === condition);
    return found && `${found.status} ${found.reason} ${found.message}`.trim();
  };
  return { ...staged, ref, two, called, health, before };
}

describe('watches of other clusters', () => {
  it('are wanted for the entries of the components that declare them', async () => {
    const { ship, ref, two } = await stage([proxy, other]);
    assert.deepEqual([...ship.remote.wanted.keys()], [ref.uid, two.uid]);
    assert.deepEqual(
      ship.remote.wanted.get(ref.uid)?.map(({ component }) => component),
      ['proxy'],
    );
    await ship.stop();
  });

  it('run that component of that entry alone, when something happens there', async () => {
    const { clock, ship, ref, before } = await stage([proxy, other]);
    ship.remote.event({ entryUid: ref.uid, component: 'proxy', about: 'managed/instances.services.test' });
    await clock.advance(1_000);
    const [call, ...more] = ship.calls.slice(before);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [call?.entry.id, call?.component, call?.run.reasons],
      [ref.uid, 'proxy', ['Remote:managed/instances.services.test']],
    );
    await ship.stop();
  });

  it('are not listened to about an entry that is gone', async () => {
    const { clock, ship } = await stage([proxy]);
    const triggers = async () => [...(await ship.metric('drawbridge_inventory_triggers_total')).values()];
    const before = await triggers();
    ship.remote.event({ entryUid: 'gone', component: 'proxy', about: 'managed/instances.services.test' });
    await clock.advance(1_000);
    assert.deepEqual(await triggers(), before);
    await ship.stop();
  });

  it('say in the entry whether they are to be relied on, and since when', async () => {
    const { clock, inventory, ship, ref, two, health } = await stage([proxy, other]);
    assert.equal(health(), 'True Watching');
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(1_000);
    assert.equal(health(), 'False NotWatching silent for a minute');
    assert.equal(inventory.entry(two)?.conditions.find(({ type }) => type === condition)?.status, 'True');
    assert.equal(inventory.entry(ref)?.conditions.find(({ type }) => type === 'Ready')?.status, 'True');
    ship.remote.health(ref.uid, undefined);
    await clock.advance(1_000);
    assert.equal(health(), 'True Watching');
    await ship.stop();
  });
});

describe('while the watches of a cluster are down', () => {
  it('what watches it runs every five minutes, and nothing else more often than before', async () => {
    const { clock, ship, ref, two, called } = await stage([proxy, other]);
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(5 * minute - 1);
    assert.deepEqual(called('proxy'), []);
    await clock.advance(1 + 5 * minute + 100);
    assert.deepEqual(called('proxy'), ['Remote:unwatched', 'Remote:unwatched']);
    await clock.advance(15 * minute);
    assert.equal(called('proxy').length, 5);
    assert.deepEqual(called('other'), []);
    assert.ok(ship.calls.slice(4).every(({ entry }) => entry.id !== two.uid));
    ship.remote.health(ref.uid, undefined);
    await clock.advance(30 * minute);
    assert.equal(called('proxy').length, 5);
    await ship.stop();
  });

  it('a run for whatever reason counts', async () => {
    const { clock, ship, ref, called } = await stage([proxy]);
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(4 * minute);
    ship.remote.event({ entryUid: ref.uid, component: 'proxy', about: 'managed/instances.services.test' });
    await clock.advance(4 * minute);
    assert.equal(called('proxy').length, 1);
    await clock.advance(minute + 100);
    assert.equal(called('proxy').length, 2);
    await ship.stop();
  });

  it('an interval that is shorter stays as it is', async () => {
    const { clock, ship, ref, called } = await stage([{ ...proxy, intervalSeconds: 60 }]);
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(10 * minute);
    assert.deepEqual(
      called('proxy'),
      Array.from({ length: 10 }, () => 'Interval'),
    );
    await ship.stop();
  });

  it('what failed for good is not run sooner, and what watches another cluster neither', async () => {
    const { clock, ship, ref, called } = await stage(
      [proxy, { name: 'manager', remoteWatches: [{ ...watch, cluster: 'management' }] }],
      { proxy: () => answer({ outcome: 'Failed' }), manager: () => done() },
    );
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(40 * minute);
    assert.deepEqual([called('proxy'), called('manager')], [[], []]);
    await ship.stop();
  });

  it('nothing is asked of an entry that is gone', async () => {
    const { clock, inventory, ship, ref } = await stage([proxy], {
      proxy: ({ operation }) => answer({ outcome: operation === 'delete' ? 'Deleted' : 'Done' }),
    });
    ship.remote.health(ref.uid, 'silent for a minute');
    await clock.advance(1_000);
    inventory.delete(ref);
    await clock.advance(5_000);
    assert.equal(inventory.entry(ref), undefined);
    const before = ship.calls.length;
    await clock.advance(20 * minute);
    assert.equal(ship.calls.length, before);
    assert.equal(ship.remote.wanted.has(ref.uid), false);
    await ship.stop();
  });
});
