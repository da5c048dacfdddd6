import assert from 'node:assert/strict';
import { digestInputs } from '../../../../src/inventory/core/digest.ts';
import { plan } from '../../../../src/inventory/core/plan.ts';
import { FactsReader } from '../../../../src/inventory/manager/facts-reader.ts';
import { KeyMemory } from '../../../../src/inventory/manager/memories.ts';
import { factsOf, type Given, minute, nowMs, stepText } from '../../../support/inventory/plan-facts.ts';

/** What a leader finds; `known`: what it remembers. */
function found(given: Given, known: Partial<KeyMemory> = {}, inputsDigest?: string) {
  const { entry, registration, stored } = factsOf(given);
  const record = stored && {
    ...stored.record,
    inputsDigest: inputsDigest ?? digestInputs(entry.content, registration, undefined),
  };
  const reader = new FactsReader({
    entries: { find: () => entry },
    runs: { find: () => record && { record, resourceVersion: '2' } },
    registrations: { get: () => registration, all: () => [registration], problem: () => undefined },
    remote: { problem: () => undefined },
    clock: { now: () => nowMs, monotonic: () => 1_000_000, schedule: () => () => {} },
    random: () => 0.5,
    onForeignWrite: () => {},
  });
  const memory = new KeyMemory({ entryUid: entry.ref.uid, component: 'network' });
  Object.assign(memory, known);
  const facts = reader.refresh(memory);
  assert.ok(facts);
  return facts;
}

describe('a record that this process did not write', () => {
  const asynchronous = (inMs: number): Given => ({ run: {}, record: { asynchronous: true, deadlineMs: nowMs + inMs } });
  const idle = (inMs: number, attempt = 0) => ({ nextAtMs: nowMs + inMs, attempt });
  const lost = 'end Retry(LeaseOver), 500ms Retry, attempt 1';
  const failed = { seq: 0, outcome: 'Failed' } as const;
  for (const [what, given, step, known] of [
    ['synchronous run', { run: {} }, lost],
    ['outputs not written', { run: {}, record: { phase: 'Applying', asynchronous: true } }, lost],
    ['synchronous run, not a new leader', { run: {} }, 'rest 15s', { version: '1' }],
    ['asynchronous run, with the unstored share', asynchronous(30_000), 'rest 36s'],
    ['asynchronous run, clock behind', asynchronous(-300_000), 'rest 10s'],
    ['asynchronous run, clock ahead', asynchronous(300_000), 'rest 1min'],
    ['idle', { record: idle(5000) }, 'rest 5s, time'],
    ['overdue', { record: idle(-5000) }, 'start for Interval, time'],
    ['Done, clock ahead', { record: idle(1e12) }, 'rest 66min, time'],
    ['Retry, clock ahead', { last: { outcome: 'Retry' }, record: idle(72 * minute, 1) }, 'rest 1s, time'],
    ['4 Retry, clock ahead', { last: { outcome: 'Retry' }, record: idle(72 * minute, 4) }, 'rest 8s, time'],
    ['40 Retry, clock ahead', { last: { outcome: 'Retry' }, record: idle(72 * minute, 40) }, 'rest 5min, time'],
    ['undone after Failed, clock ahead', { last: failed, record: idle(1e12) }, 'rest 5min, time'],
    [
      'known, wall clock moved',
      { record: idle(-1) },
      'rest 7ms, time',
      { wake: { version: `1/Idle/${nowMs - 1}`, at: 1_000_007, reason: 'Interval' } },
    ],
    ['200 ms after a start by this process', { record: idle(0) }, 'rest 100ms, time', { lastStart: 999_900 }],
  ] satisfies [string, Given, string, Partial<KeyMemory>?][])
    it(`${what}: ${step}`, () => {
      const facts = found(given, known);
      assert.equal(stepText(plan(facts), facts.stored?.record), step);
    });

  it('is remembered: inputs that changed during its run, its start, and that an input was missing', () => {
    const { run, record } = asynchronous(0);
    const late: Given = { ...(run && { run }), record: { ...record, startedAtMs: nowMs - 310_000 } };
    assert.equal(found(late).memory.inputsChanged, false);
    assert.equal(found(late, {}, 'old').memory.inputsChanged, true);
    assert.equal(found(late).memory.lastStart, 990_000);
    assert.equal(found(late, { lastStart: 999_900 }).memory.lastStart, 999_900);
    const missing = [{ path: '/status/outputs/x', want: 'present' }] as const;
    const waits: Given = { last: { outcome: 'NotReady', reason: 'MissingAlreadySatisfied', missing } };
    assert.equal(found(waits).memory.sawMissing, true);
    const has = { content: { spec: {}, status: { outputs: { x: 1 } } } };
    assert.equal(found({ ...waits, entry: has }).memory.sawMissing, false);
  });
});
