import assert from 'node:assert/strict';
import { addToCount } from '../../../../src/inventory/manager/limits.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { type Behavior, done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

/** Counts active calls. */
class Gauge {
  now = 0;
  most = 0;

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.now += 1;
    this.most = Math.max(this.most, this.now);
    try {
      return await work();
    } finally {
      this.now -= 1;
    }
  }
}

const hang: Behavior = (_request, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

it('the counts of runs contain no key without runs', () => {
  const counts = new Map<string, number>();
  addToCount(counts, 'one', 1);
  addToCount(counts, 'one', 1);
  addToCount(counts, 'two', 1);
  addToCount(counts, 'one', -1);
  addToCount(counts, 'two', -1);
  assert.deepEqual([...counts], [['one', 1]]);
  addToCount(counts, 'one', -1);
  assert.equal(counts.size, 0);
});

describe('the limit of concurrent runs', () => {
  const isDone = (row: { readonly state: string }): boolean => row.state === 'Done';

  it('is six per entry over all components, and does not delay other entries', async () => {
    const names = Array.from({ length: 10 }, (_, i) => `c${i}`);
    const ofEntry = new Map<string, Gauge>();
    const slow: Behavior = ({ entry }, signal) => {
      const gauge = ofEntry.get(entry.id) ?? new Gauge();
      ofEntry.set(entry.id, gauge);
      return gauge.during(() => sleep(clock, 1000, signal).then(() => done()));
    };
    const { clock, inventory, manager } = await memoryStage(
      names.map((name) => ({ name })),
      Object.fromEntries(names.map((name) => [name, slow])),
    );
    const one = inventory.create({ name: 'one' });
    await clock.advance(500);
    assert.equal(ofEntry.get(one.ref.uid)?.now, 6);
    const two = inventory.create({ name: 'two' });
    await clock.advance(100);
    assert.equal(ofEntry.get(two.ref.uid)?.now, 6);
    await clock.advance(3000);
    for (const { ref } of [one, two]) {
      assert.equal(ofEntry.get(ref.uid)?.most, 6);
      assert.ok(inventory.entry(ref)?.components.every(isDone));
    }
    assert.equal(manager.calls.length, 20);
  });

  it('is maxConcurrent per component over all entries', async () => {
    const gauge = new Gauge();
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', maxConcurrent: 2 }], {
      network: (_request, signal) => gauge.during(() => sleep(clock, 1000, signal).then(() => done())),
    });
    for (let i = 0; i < 20; i++) inventory.create({ name: `e${i}` });
    await clock.advance(9900);
    assert.equal(gauge.most, 2);
    // No slot stays empty in between.
    assert.ok(manager.calls.length >= 18, `${manager.calls.length} calls`);
    await clock.advance(2000);
    assert.equal(manager.calls.length, 20);
    assert.equal(gauge.most, 2);
  });

  it('isolates a hanging component from the others', async () => {
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'dead', maxConcurrent: 4, timeoutSeconds: 30 }, { name: 'network' }],
      { dead: hang },
    );
    for (let i = 0; i < 50; i++) inventory.create({ name: `e${i}` });
    await clock.advance(1000);
    assert.equal(manager.callsOf('dead').length, 4);
    for (let i = 0; i < 50; i++) {
      const row = inventory.entry({ name: `e${i}` })?.components.find(({ name }) => name === 'network');
      assert.equal(row?.state, 'Done', `e${i}`);
    }
  });
});
