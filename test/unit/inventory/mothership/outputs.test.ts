import assert from 'node:assert/strict';
import type { StoredRecord } from '../../../../src/inventory/core/run-record.ts';
import type { EntryRef } from '../../../../src/inventory/entry.ts';
import { NewestEntries } from '../../../../src/inventory/mothership/newest-entries.ts';
import { Outputs } from '../../../../src/inventory/mothership/outputs.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { MemoryRegistrations } from '../../../support/inventory/memory-registrations.ts';
import { MemoryInventory } from '../../../support/inventory/memory-stores.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const network = registrationOf('network');
const { signal } = new AbortController();

describe('outputs while the watch is late', () => {
  const clock = new SimulatedClock();
  const inventory = new MemoryInventory();
  const { entries, runs, pause } = inventory.open();
  const { registrations } = new MemoryRegistrations(clock, [{ name: 'network' }]);
  const outputs = new Outputs({
    entries,
    runs,
    registry: registrations,
    newest: new NewestEntries(),
    clock,
    random: () => 0,
    log: noLog,
  });
  let ref: EntryRef;

  before(async () => {
    ({ ref } = inventory.create({ name: 'one' }));
    await outputs.apply(ref, network, { network: { v: 'B' } }, signal);
    pause();
    await outputs.apply(ref, network, { network: { v: 'A' } }, signal);
  });

  it('are compared with what was written last', () => {
    const watched = entries.find(ref.uid);
    assert.ok(watched);
    const again = { outcome: 'Done', outputs: { network: { v: 'B' } } } as const;
    assert.deepEqual(outputs.withoutIdle(watched, again), again);
    const same = { outcome: 'Done', outputs: { network: { v: 'A' } } } as const;
    assert.deepEqual(outputs.withoutIdle(watched, same), { outcome: 'Done' });
  });

  it('go with their component', async () => {
    const { ref: other } = inventory.create({ name: 'two' });
    // By the component itself, and nothing of it is watched yet.
    inventory.edit(other, (object) => {
      object.status = { outputs: { network: { v: 'C' } } };
    });
    const base = { record: { entry: other, component: 'network' }, resourceVersion: '1' } as unknown as StoredRecord;
    assert.equal(await outputs.retire(other, network, base, signal), undefined);
    assert.deepEqual(inventory.entry(other)?.content.status.outputs, {});
  });
});
