import assert from 'node:assert/strict';
import fc from 'fast-check';
import { KeyedQueue } from '../../../src/engine/queue.ts';
import { runs } from '../../support/runs.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const LANES = 3;

interface Wanted {
  lane: number;
  dueAt: number;
  wallAt: number;
  /** Whether the wall clock has reached its time once; a later change of the clock does not undo that. */
  wallReached: boolean;
}

/** A model of the queue as a list with linear search: slow, but obviously correct. */
class Model {
  readonly wanted = new Map<string, Wanted>();
  readonly running = new Set<string>();
  readonly clock: SimulatedClock;

  constructor(clock: SimulatedClock) {
    this.clock = clock;
  }

  add(key: string, lane: number, delayMs: number): void {
    const before = this.wanted.get(key);
    const dueAt = this.clock.monotonic() + delayMs;
    const wallAt = delayMs > 0 ? this.clock.now() + delayMs : Number.POSITIVE_INFINITY;
    this.wanted.set(key, {
      lane: Math.min(lane, before?.lane ?? lane),
      dueAt: Math.min(dueAt, before?.dueAt ?? dueAt),
      wallAt: Math.min(wallAt, before?.wallAt ?? wallAt),
      wallReached: before?.wallReached ?? false,
    });
  }

  /** Whether the key is certainly due. The queue may notice a jump of the wall clock up to a second later. */
  isDue({ dueAt }: Wanted): boolean {
    return dueAt <= this.clock.monotonic();
  }

  lookAtWall(): void {
    for (const wanted of this.wanted.values()) wanted.wallReached ||= wanted.wallAt <= this.clock.now();
  }

  mayBeDue(wanted: Wanted): boolean {
    return this.isDue(wanted) || wanted.wallReached;
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const command = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    key,
    lane: fc.nat(LANES - 1),
    delayMs: fc.oneof(fc.constant(0), fc.nat(5000)),
  }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('take' as const) }),
  fc.record({ kind: fc.constant('done' as const), key }),
  fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(3000) }),
);
const jump = fc.record({ kind: fc.constant('jump' as const), ms: fc.integer({ min: -100_000, max: 100_000 }) });
type Command = typeof command extends fc.Arbitrary<infer T> ? T | { kind: 'jump'; ms: number } : never;

async function check(commands: readonly Command[], exactOrder: boolean): Promise<void> {
  const clock = new SimulatedClock();
  const model = new Model(clock);
  const queue = new KeyedQueue(clock, () => {}, { lanes: LANES });

  const take = (): string | undefined => {
    const candidates = [...model.wanted].filter(([key]) => !model.running.has(key));
    const work = queue.take();
    if (!work) {
      const lost = candidates.filter(([, wanted]) => model.isDue(wanted)).map(([key]) => key);
      assert.deepEqual(lost, [], 'a key that is due was not handed out');
      return undefined;
    }
    const wanted = model.wanted.get(work.key);
    assert.ok(wanted, `${work.key} was returned but never added`);
    assert.ok(!model.running.has(work.key), `${work.key} was returned twice at a time`);
    assert.ok(model.mayBeDue(wanted), `${work.key} was returned before its time`);
    assert.equal(work.lane, wanted.lane);
    if (exactOrder) {
      for (const [key, other] of candidates.filter(([, other]) => model.isDue(other))) {
        const isEarlier = other.lane < wanted.lane || (other.lane === wanted.lane && other.dueAt < wanted.dueAt);
        assert.ok(!isEarlier, `${work.key} was returned before ${key}`);
      }
    }
    model.wanted.delete(work.key);
    model.running.add(work.key);
    return work.key;
  };

  for (const step of commands) {
    switch (step.kind) {
      case 'add':
        queue.add(step.key, 'r', {
          lane: step.lane,
          ...(step.delayMs > 0 ? { atMs: clock.now() + step.delayMs } : {}),
        });
        model.add(step.key, step.lane, step.delayMs);
        break;
      case 'take':
        take();
        break;
      case 'done':
        queue.done(step.key);
        model.running.delete(step.key);
        break;
      case 'advance':
        await clock.advance(step.ms);
        break;
      case 'jump':
        clock.setWall(clock.now() + step.ms);
        break;
    }
    model.lookAtWall();
    const due = [...model.wanted.values()].filter((wanted) => model.isDue(wanted)).length;
    assert.ok(queue.depth >= due);
    assert.equal(queue.depth + queue.delayed, model.wanted.size);
  }

  // After any history, the queue returns every added key exactly once.
  for (let round = 0; round < 3; round++) {
    for (const key of model.running) queue.done(key);
    model.running.clear();
    while (take());
    await clock.advance(105_000);
    model.lookAtWall();
  }
  assert.deepEqual([...model.wanted.keys()], []);
  assert.equal(queue.depth + queue.delayed, 0);
}

describe('KeyedQueue compared with a model', () => {
  it('loses no key, runs none twice at a time, and orders by lane and then by due time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60, size: 'max' }), (commands) =>
        check(commands, true),
      ),
      { seed: 20261121, numRuns: runs(1000) },
    );
  });

  it('is never late when the wall clock jumps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(command, jump), { minLength: 20, maxLength: 60, size: 'max' }), (commands) =>
        check(commands, false),
      ),
      { seed: 20261122, numRuns: runs(1000) },
    );
  });
});
