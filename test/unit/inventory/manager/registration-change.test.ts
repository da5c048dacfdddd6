import assert from 'node:assert/strict';
import { sleep } from '../../../../src/kit/clock.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { evenRandom, memoryStage } from '../../../support/inventory/memory-stage.ts';

const entries = 250;
const region = '/spec/cluster/region';
/** At most five runs per second: fewer than requested. */
const network = { name: 'network', reads: [region], maxConcurrent: 5, retry: { baseSeconds: 1, capSeconds: 1 } };

describe('a changed registration', () => {
  it('runs every entry once, spread over time, without delaying users who change an entry', async () => {
    const calls: { readonly at: number; readonly entry: string; readonly reasons: string }[] = [];
    let isSlow = false;
    const staged = await memoryStage(
      [network],
      {
        network: async ({ entry, run }) => {
          calls.push({ at: staged.clock.monotonic(), entry: entry.id, reasons: run.reasons.join() });
          if (isSlow) await sleep(staged.clock, 1_000);
          return done();
        },
      },
      evenRandom(),
    );
    const { clock, inventory, registrations, manager } = staged;
    const refs = Array.from({ length: entries }, (_, n) => inventory.create({ name: `e${n}` }).ref);
    await clock.advance(1_000);
    assert.equal(calls.length, entries);
    calls.length = 0;
    isSlow = true;

    const changedAt = clock.monotonic();
    registrations.put({ ...network, maxConcurrent: 6 });
    await clock.advance(1_000);
    assert.ok(calls.length > 2 && calls.length < 15, `${calls.length} in the first second`);
    await clock.advance(19_000);
    // More keys are due than can run, so a key after them would wait for seconds.
    const editedAt = clock.monotonic();
    const waiting = refs.find(({ uid }) => !calls.some(({ entry }) => entry === uid));
    assert.ok(waiting);
    inventory.setSpec(waiting, { cluster: { region: 'westeurope' } });
    await clock.advance(300);
    const urgent = calls.find(({ entry }) => entry === waiting.uid);
    assert.ok(urgent && urgent.at - editedAt <= 250, `called after ${(urgent?.at ?? Number.NaN) - editedAt} ms`);
    assert.match(urgent.reasons, /ConfigChanged/);

    await clock.advance(60_000);
    assert.equal(calls.length, entries);
    assert.equal(new Set(calls.map(({ entry }) => entry)).size, entries);
    assert.ok(calls.every(({ entry, reasons }) => entry === waiting.uid || reasons === 'RegistrationChanged'));
    const last = Math.max(...calls.map(({ at }) => at)) - changedAt;
    assert.ok(last > 28_000 && last < 60_000, `the last after ${last} ms`);
    const triggers = await manager.metric('drawbridge_inventory_triggers_total');
    assert.equal(triggers.get('{component="network",reason="RegistrationChanged"}'), entries);
    await manager.stop();
  }).timeout(60_000);

  it('does not disturb a run that is starting', async () => {
    const { clock, inventory, registrations, manager } = await memoryStage([network]);
    const answered = Promise.withResolvers<void>();
    inventory.fault = (operation, when) =>
      operation === 'run.swap' && when === 'after' ? answered.promise.then(() => undefined) : undefined;
    const { ref } = inventory.create({ name: 'one' });
    manager.stores.pause();
    await clock.advance(100);
    // Its record is stored, and the process has no answer yet.
    registrations.put({ ...network, maxConcurrent: 6 });
    await clock.advance(100);
    inventory.fault = () => undefined;
    answered.resolve();
    await clock.advance(100);
    manager.stores.resume();
    await clock.advance(100);
    const { record } = inventory.record({ entryUid: ref.uid, component: 'network' }) ?? {};
    const ended = [...(record?.history ?? []), record?.lastOutcome].map((run) => [run?.seq, run?.outcome]);
    // Then the key runs again for the registration.
    assert.deepEqual(ended, [
      [1, 'Done'],
      [2, 'Done'],
    ]);
  });
});
