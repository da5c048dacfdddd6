import assert from 'node:assert/strict';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { evenRandom, memoryStage } from '../../../support/inventory/memory-stage.ts';
import type { MemoryInventory } from '../../../support/inventory/memory-stores.ts';
import type { SimulatedClock } from '../../../support/simulated-clock.ts';

const readers = (count: number): string[] => Array.from({ length: count }, (_, n) => `reader${n}`);

function publish(inventory: MemoryInventory, version: string): void {
  inventory.setOutputs({ name: 'one' }, { kubeconfig: { version } });
}

/** An entry whose readers have run. `starts` are the later starts by reader, in milliseconds from now. */
async function stage(count: number, behavior: (clock: SimulatedClock) => Promise<Reply> | Reply = () => done()) {
  const starts = new Map<string, number[]>();
  let fromMs = 0;
  const names = readers(count);
  const staged = await memoryStage(
    names.map((name) => ({ name, kubeconfig: 'read' })),
    Object.fromEntries(
      names.map((name) => [
        name,
        () => {
          starts.set(name, [...(starts.get(name) ?? []), staged.clock.monotonic() - fromMs]);
          return behavior(staged.clock);
        },
      ]),
    ),
    evenRandom(),
  );
  const { clock, inventory } = staged;
  const fromNow = (): void => {
    starts.clear();
    fromMs = clock.monotonic();
  };
  inventory.create({ name: 'one' });
  await clock.advance(2_000);
  fromNow();
  return { ...staged, starts, fromNow };
}

/** The same, after the first kubeconfig was published. */
async function runningStage(...options: Parameters<typeof stage>) {
  const staged = await stage(...options);
  publish(staged.inventory, 'v1');
  await staged.clock.advance(2_000);
  staged.fromNow();
  return staged;
}

const firsts = (starts: ReadonlyMap<string, readonly number[]>): number[] =>
  [...starts.values()].map(([first]) => first ?? Number.NaN).sort((a, b) => a - b);

describe('a new kubeconfig', () => {
  it('triggers five readers immediately', async () => {
    const { clock, inventory, starts } = await runningStage(5);
    publish(inventory, 'v2');
    await clock.advance(1_000);
    assert.equal(starts.size, 5);
  });

  it('triggers eight readers once each, at random times within a minute', async () => {
    const { clock, inventory, starts, manager } = await runningStage(8);
    publish(inventory, 'v2');
    await clock.advance(1_000);
    assert.ok(starts.size <= 2, `${starts.size} at once`);
    await clock.advance(60_000);
    assert.equal(starts.size, 8);
    assert.ok([...starts.values()].every(({ length }) => length === 1));
    const times = firsts(starts);
    assert.ok((times[7] ?? 0) - (times[0] ?? 0) > 30_000, times.join());
    for (const [name] of starts) {
      assert.ok(manager.callsOf(name).at(-1)?.run.reasons.includes('InputChanged:/status/outputs/kubeconfig/version'));
    }
  });

  it('triggers eight waiting readers immediately if it is the first one', async () => {
    const { clock, inventory, starts } = await stage(8);
    publish(inventory, 'v1');
    await clock.advance(1_000);
    assert.equal(starts.size, 8);
  });

  it('does not delay a reader that has another trigger', async () => {
    const { clock, inventory, starts } = await runningStage(8);
    publish(inventory, 'v2');
    inventory.setSpec(
      { name: 'one' },
      { components: Object.fromEntries(readers(8).map((name) => [name, { enabled: true, config: { size: 1 } }])) },
    );
    await clock.advance(2_000);
    assert.equal(starts.size, 8);
    await clock.advance(60_000);
    assert.ok([...starts.values()].every(({ length }) => length === 1));
  });

  it('triggers a running reader again at its random time', async () => {
    let release = (): void => {};
    let isSlow = false;
    const { clock, inventory, starts, fromNow } = await runningStage(8, () => {
      if (!isSlow) return done();
      isSlow = false;
      return new Promise((resolve) => {
        release = () => resolve(done());
      });
    });
    isSlow = true;
    inventory.setSpec({ name: 'one' }, { components: { reader3: { enabled: true, config: { size: 1 } } } });
    await clock.advance(500);
    fromNow();
    publish(inventory, 'v2');
    await clock.advance(100);
    release();
    await clock.advance(61_000);
    assert.equal(starts.size, 8);
    assert.ok([...starts.values()].every(({ length }) => length === 1));
  });
});
