import assert from 'node:assert/strict';
import type { StoredRecord } from '../../../../src/inventory/core/run-record.ts';
import type { EntryRef } from '../../../../src/inventory/entry.ts';
import { OutputWriter } from '../../../../src/inventory/manager/output-writer.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { WriteThroughCache } from '../../../../src/kube/write-through-cache.ts';
import { answer, done } from '../../../support/inventory/in-memory-manager.ts';
import { MemoryRegistrations } from '../../../support/inventory/memory-registrations.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
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
  const outputWriter = new OutputWriter({
    entries,
    runs,
    access: { deleteAccount: async () => {} },
    registrations,
    latestEntries: new WriteThroughCache({
      watched: (uid) => entries.find(uid),
      uidOf: (entry) => entry.ref.uid,
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    }),
  });
  let ref: EntryRef;

  before(async () => {
    ({ ref } = inventory.create({ name: 'one' }));
    await outputWriter.apply(ref, network, { network: { v: 'B' } }, signal);
    pause();
    await outputWriter.apply(ref, network, { network: { v: 'A' } }, signal);
  });

  it('are compared with the last write', () => {
    const watched = entries.find(ref.uid);
    assert.ok(watched);
    assert.equal(outputWriter.isChange(watched, { network: { v: 'B' } }), true);
    assert.equal(outputWriter.isChange(watched, { network: { v: 'A' } }), false);
  });

  it('are written at the live version, and not to another entry of the name', async () => {
    const { ref: first } = inventory.create({ name: 'three' });
    inventory.setSpec(first, { suspend: true });
    assert.equal(await outputWriter.apply(first, network, { network: { v: 'D' } }, signal), undefined);
    assert.deepEqual(inventory.entry(first)?.content.status.outputs, { network: { v: 'D' } });
    inventory.delete(first);
    inventory.create({ name: 'three' });
    assert.equal(await outputWriter.apply(first, network, { network: { v: 'E' } }, signal), undefined);
    assert.deepEqual(inventory.entry(first)?.content.status.outputs, {});
  });

  it('are removed with their component', async () => {
    const { ref: other } = inventory.create({ name: 'two' });
    // The component wrote them itself, and the watch has not reported them yet.
    inventory.setOutputs(other, { network: { v: 'C' } });
    const base = { record: { entry: other, component: 'network' }, resourceVersion: '1' } as unknown as StoredRecord;
    await outputWriter.retire(other, network, base, { abandoned: false }, signal);
    assert.deepEqual(inventory.entry(other)?.content.status.outputs, {});
  });
});

describe('outputs that make the entry too large', () => {
  it('end the run as Failed, because a retry cannot succeed', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], {
      network: () => {
        inventory.fault = (asked, when) => (asked === 'entry.patch' && when === 'before' ? denied : undefined);
        return done({ network: { v: 'A' } });
      },
    });
    const message = 'EntryTooLarge: the entry would have 70000 bytes; at most 65536 are allowed';
    const denied = new ApiError(413, '', message, undefined, [{ reason: 'EntryTooLarge', message }]);
    inventory.create({ name: 'one' });
    await clock.advance(30_000);
    const last = inventory.records()[0]?.record.lastOutcome;
    assert.deepEqual(
      [last?.outcome, last?.reason, last?.message],
      ['Failed', 'EntryTooLarge', 'the entry would have 70000 bytes; at most 65536 are allowed'],
    );
    inventory.fault = () => undefined;
  });
});

describe('a component that is Deleted', () => {
  for (const [what, operation] of [
    ['outputs', 'entry.patch'],
    ['record', 'run.remove'],
  ] as const) {
    it(`keeps its entry until its ${what} can be removed`, async () => {
      const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
        network: (request) =>
          request.operation === 'delete' ? answer({ outcome: 'Deleted' }) : done({ network: { v: 'A' } }),
      });
      let refused = true;
      inventory.fault = (asked, when) =>
        refused && asked === operation && when === 'before'
          ? new ApiError(403, 'Forbidden', 'a webhook says no')
          : undefined;
      inventory.delete(ref);
      await clock.advance(120_000);
      const entry = inventory.entry(ref);
      assert.ok(entry);
      assert.equal(inventory.records().length, 1);
      if (operation === 'run.remove') {
        const [row] = entry.components;
        assert.equal(row?.state, 'Deleting');
        assert.equal(row.reason, 'NotWritten');
        assert.match(row.message ?? '', /a webhook says no/);
      }
      refused = false;
      await clock.advance(60_000);
      assert.equal(inventory.entry(ref), undefined);
      assert.deepEqual(inventory.records(), []);
      assert.equal(manager.calls.filter((call) => call.operation === 'delete').length, 1);
    });
  }
});
