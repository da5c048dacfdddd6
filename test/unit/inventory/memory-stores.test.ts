import assert from 'node:assert/strict';
import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import type { EntryRef } from '../../../src/inventory/entry.ts';
import { isConflict } from '../../../src/kube/errors.ts';
import { MemoryInventory } from '../../support/inventory/memory-stores.ts';

const { signal } = new AbortController();
const record = (entry: EntryRef, seq: number): RunRecord => ({
  entry,
  component: 'network',
  seq,
  phase: 'Running',
  operation: 'reconcile',
  reasons: [],
  inputsDigest: undefined,
  credentialId: `JTI=${seq}`,
  previousCredential: undefined,
  startedAtMs: 0,
  asynchronous: false,
  deadlineMs: 5000,
  attempt: 0,
  nextAtMs: undefined,
  heldBy: undefined,
  lastOutcome: undefined,
  history: [],
});

describe('the inventory in memory', () => {
  it('accepts only one of two writes with the same base', async () => {
    const inventory = new MemoryInventory();
    const { ref } = inventory.create({ name: 'c1' });
    const [a, b] = [inventory.open(), inventory.open()];
    const first = await a.runs.swap(record(ref, 1), undefined, signal);
    const second = await b.runs.swap(record(ref, 1), undefined, signal);
    assert.deepEqual([first.kind, second.kind], ['stored', 'conflict']);
    assert.equal(second.stored?.resourceVersion, first.stored?.resourceVersion);
  });

  it('delivers events of a paused watch late, and only differences after a relist', () => {
    const inventory = new MemoryInventory();
    const stores = inventory.open();
    const seen: string[] = [];
    stores.entries.subscribe((change) => seen.push(`${change.kind} ${change.entry.ref.name}`));
    stores.pause();
    inventory.create({ name: 'c1' });
    assert.deepEqual(seen, []);
    stores.resume();
    assert.deepEqual(seen, ['changed c1']);
    stores.pause();
    inventory.create({ name: 'c2' });
    inventory.delete({ name: 'c2' });
    inventory.delete({ name: 'c1' });
    stores.relist();
    assert.deepEqual(seen, ['changed c1', 'gone c1']);
  });

  it('rejects a patch of another version, and separates status and metadata', async () => {
    const inventory = new MemoryInventory();
    const { ref, resourceVersion } = inventory.create({ name: 'c1' });
    const { entries } = inventory.open();
    const status = { status: { outputs: { network: { vnetName: 'v' } } }, spec: { suspend: true } };
    const patched = await entries.patch(ref, 'status', status, { resourceVersion, signal });
    assert.deepEqual([patched.content.status.outputs, patched.suspended], [{ network: { vnetName: 'v' } }, false]);
    await assert.rejects(entries.patch(ref, 'status', status, { resourceVersion, signal }), isConflict);
  });

  it('keeps an entry until its finalizers are removed', async () => {
    const inventory = new MemoryInventory();
    const { ref, resourceVersion } = inventory.create({ name: 'c1' });
    const { entries } = inventory.open();
    await entries.patch(ref, 'metadata', { metadata: { finalizers: ['x/y'] } }, { resourceVersion, signal });
    inventory.delete(ref);
    const deleting = inventory.entry(ref);
    assert.ok(deleting?.deleting);
    const atDeleting = { resourceVersion: deleting.resourceVersion, signal };
    await entries.patch(ref, 'metadata', { metadata: { finalizers: [] } }, atDeleting);
    assert.equal(inventory.entry(ref), undefined);
  });
});
