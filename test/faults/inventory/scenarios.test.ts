import assert from 'node:assert/strict';
import { plan } from '../../../src/inventory/core/plan.ts';
import { factsOf, now } from '../../support/inventory/plan-facts.ts';
import { simComponent } from '../../support/inventory/random-components.ts';
import { SimulatedManager } from '../../support/inventory/simulated-manager.ts';
import type { SimComponent, SimRegistration } from '../../support/inventory/simulation.ts';
import { outputsOf, SimulatedWorld } from '../../support/inventory/world.ts';
import { seededRandom } from '../../support/random.ts';

const graphs = 500;
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const componentOf = (
  name: string,
  rest: Partial<SimComponent> = {},
  registration: Partial<SimRegistration> = {},
): SimComponent => simComponent(name, { specFields: ['a'], isSynchronous: true, ...rest }, registration);

/** A world without faults, with one manager and entries e1, e2, and so on. */
async function begin(components: readonly SimComponent[], entries = 1, seed = 1) {
  const world = new SimulatedWorld(seededRandom(seed), components);
  const uids = Array.from({ length: entries }, (_, i) => world.create(`e${i + 1}`, { a: 1 }).ref.uid);
  const manager = new SimulatedManager(world, 0);
  const run = async (ms: number): Promise<void> => {
    await world.time.runUntil(world.time.now + ms, 5_000_000);
  };
  const uidOf = (entry: number): string => uids[entry - 1] ?? '';
  const recordOf = (entry: number, component: string) =>
    world.inventory.record({ entryUid: uidOf(entry), component })?.record;
  const outcome = (entry: number, component: string): string | undefined =>
    recordOf(entry, component)?.lastOutcome?.outcome;
  const output = (entry: number, component: string): number | undefined => {
    const found = world.entry(uidOf(entry));
    return found && outputsOf(found)[component]?.value;
  };
  const edit = (entry: number, cluster: Readonly<Record<string, number>>): void =>
    world.edit(uidOf(entry), ({ spec }) => {
      spec.cluster = cluster;
    });
  const runsOf = (component: string): number => world.log.filter(({ key }) => key.endsWith(`/${component}`)).length;
  return { world, manager, run, outcome, output, edit, uidOf, recordOf, runsOf };
}

const chainOf = (length: number, durationMs: (index: number) => number): SimComponent[] =>
  Array.from({ length }, (_, index) =>
    componentOf(`c${index}`, { needs: index === 0 ? [] : [`c${index - 1}`], durationMs: durationMs(index) }),
  );

/** Two to eight components; in half of the graphs they require all that they read. */
function randomGraph(random: () => number): SimComponent[] {
  const isNeeded = random() < 0.5 ? 1 : 0.6;
  return Array.from({ length: 2 + Math.floor(random() * 7) }, (_, index) => {
    const others = Array.from({ length: index }, (_unused, other) => `c${other}`).filter(() => random() < 0.5);
    const needs = others.filter(() => random() < isNeeded);
    const likes = others.filter((other) => !needs.includes(other));
    return componentOf(`c${index}`, { needs, likes, durationMs: 1 + Math.floor(random() * 300) });
  });
}

describe('components without a declared order', function () {
  this.timeout(30_000 + 100 * graphs);

  it('reach the same state in every order, a chain of n in at most 2 n runs', async () => {
    for (let seed = 0; seed < graphs; seed += 1) {
      const random = seededRandom(seed);
      const length = 2 + (seed % 7);
      const shuffled = chainOf(length, () => 1 + Math.floor(random() * 300)).sort(() => random() - 0.5);
      const { world, run, outcome, output } = await begin(shuffled, 1, seed);
      await run(10 * second);
      for (let i = 0; i < length; i += 1) {
        assert.equal(outcome(1, `c${i}`), 'Done', `seed ${seed}`);
        assert.equal(output(1, `c${i}`), 2 + 2 * i, `seed ${seed}`);
      }
      assert.ok(world.log.length <= 2 * length, `seed ${seed}: ${world.log.length} runs of ${length}`);
    }
  });

  it('of any acyclic graph reach the same state, with one run each and one more per change of inputs', async () => {
    for (let seed = 0; seed < graphs; seed += 1) {
      const random = seededRandom(seed);
      const components = randomGraph(random);
      const ends: unknown[] = [];
      for (const order of [1, 2]) {
        const shuffled = [...components].sort(() => random() - 0.5);
        const { world, run, uidOf, runsOf } = await begin(shuffled, 1, seed + order);
        const changes = new Map<string, number>();
        const { onEntry } = world.inventory;
        world.inventory.onEntry = (now, before, isGone) => {
          onEntry(now, before, isGone);
          const [is, was] = [outputsOf(now), before ? outputsOf(before) : {}];
          for (const name of Object.keys(is)) {
            if (is[name]?.value !== was[name]?.value) changes.set(name, (changes.get(name) ?? 0) + 1);
          }
        };
        await run(20 * second);
        for (const { name, needs, likes } of components) {
          const runs = runsOf(name);
          const allowed = [...needs, ...likes].reduce((sum, other) => sum + (changes.get(other) ?? 0), 1);
          assert.ok(runs <= allowed, `seed ${seed}: ${runs} runs of ${name}, ${allowed} at most`);
        }
        // A waiting component has a first run and one run per input.
        const edges = components.reduce((sum, { needs }) => sum + needs.length, 0);
        if (components.every(({ likes }) => likes.length === 0)) {
          assert.ok(world.log.length <= components.length + edges, `seed ${seed}: ${world.log.length} runs`);
        }
        const entry = world.entry(uidOf(1));
        ends.push(entry && outputsOf(entry));
      }
      assert.equal(Object.keys(ends[0] ?? {}).length, components.length, `seed ${seed}`);
      assert.deepEqual(ends[0], ends[1], `seed ${seed}`);
    }
  });

  it('run concurrently once all inputs are present', async () => {
    const { world, run, uidOf } = await begin(chainOf(5, () => 100));
    await run(10 * second);
    const from = world.log.length;
    for (const name of ['c0', 'c1', 'c2', 'c3', 'c4']) world.force(uidOf(1), name);
    await run(50);
    assert.equal(world.log.length - from, 5);
  });

  it('are each runnable alone', async () => {
    const { world, run, outcome, uidOf } = await begin([componentOf('c7', { needs: ['c6'] })]);
    await run(second);
    assert.equal(outcome(1, 'c7'), 'NotReady');
    world.publish({ entryUid: uidOf(1), component: 'c6' }, 5);
    await run(second);
    assert.equal(outcome(1, 'c7'), 'Done');
  });
});

describe('triggers', () => {
  it('of N writes over T seconds cause at most 2 + T/0.2 runs, the last of them for the last write', async () => {
    const { world, run, outcome, output, edit } = await begin([componentOf('c0', { durationMs: 200 })]);
    const writes = 1000;
    for (let i = 0; i < writes; i += 1) {
      edit(1, { a: i });
      await run(5);
    }
    await run(10 * second);
    assert.equal(outcome(1, 'c0'), 'Done');
    assert.equal(output(1, 'c0'), writes);
    assert.ok(world.log.length <= 2 + (writes * 5) / 200, `${world.log.length} runs`);
  });

  it('of inputs that change during a run and return before its end cause another run', async () => {
    for (let backAt = 60; backAt <= 120; backAt += 2) {
      const { run, output, edit } = await begin([componentOf('c0')]);
      await run(50);
      edit(1, { a: 5 });
      await run(backAt - 50);
      edit(1, { a: 1 });
      await run(5 * second);
      assert.equal(output(1, 'c0'), 2, `back at ${backAt} ms`);
    }
  });

  it('by the interval correct external changes', async () => {
    const { world, run, output, uidOf } = await begin([componentOf('c0')]);
    await run(second);
    world.withdraw({ entryUid: uidOf(1), component: 'c0' });
    await run(1.1 * hour + second);
    assert.deepEqual(world.log[1]?.reasons, ['Interval']);
    assert.equal(output(1, 'c0'), 2);
  });
});

describe('a component that waits for an input', () => {
  it('runs at most 7 times an hour, without counting attempts', async () => {
    const runs: number[] = [];
    for (let seed = 0; seed < 50; seed += 1) {
      const { world, run, recordOf } = await begin([componentOf('c0', { needs: ['never'] })], 1, seed);
      await run(hour);
      assert.ok(world.log.length <= 8 && world.log.length >= 5, `${world.log.length} runs`);
      assert.equal(recordOf(1, 'c0')?.attempt, 0);
      runs.push(world.log.length);
    }
    assert.ok(runs.reduce((sum, n) => sum + n, 0) / runs.length <= 7);
  });
});

describe('a permanent fault', () => {
  /** Start times of a key that always answers Retry, milliseconds after its first run. */
  function retriesOf(seed: number, untilMs: number): number[] {
    const random = seededRandom(seed);
    const times: number[] = [];
    let attempt = 0;
    for (let elapsedMs = 0; elapsedMs < untilMs; times.push(elapsedMs)) {
      const given = { outcome: { outcome: 'Retry' }, record: { attempt }, random: random() } as const;
      const step = plan(factsOf(given));
      assert.ok(step.do === 'end');
      attempt = step.next.attempt;
      // Starts are 200 ms apart.
      elapsedMs += Math.max(200, step.wake.at - now);
    }
    return times.filter((time) => time < untilMs);
  }
  const keys = Array.from({ length: 1000 }, (_, seed) => retriesOf(seed, 30 * minute));

  it('is retried about 11 times in 10 minutes', async () => {
    const tries = keys.map((times) => times.filter((time) => time < 10 * minute).length);
    const mean = tries.reduce((sum, n) => sum + n, 0) / tries.length;
    assert.ok(mean > 9 && mean < 14, `${mean} times`);
  });

  it('spreads retries of 1,000 keys: in no second more than 3 times the mean', async () => {
    const perSecond = new Map<number, number>();
    let all = 0;
    for (const time of keys.flat().filter((at) => at >= 10 * minute)) {
      all += 1;
      const at = Math.floor(time / second);
      perSecond.set(at, (perSecond.get(at) ?? 0) + 1);
    }
    const mean = all / (20 * 60);
    assert.ok(Math.max(...perSecond.values()) <= 3 * mean, `${Math.max(...perSecond.values())} of ${mean}`);
  });
});

describe('an endpoint that is down', () => {
  it('is probed, counts each probe as an attempt, and everything runs when it is back', async () => {
    const component = componentOf('c0', { isDown: true });
    const { world, run, outcome, runsOf } = await begin([component, componentOf('c1')], 50);
    await run(second);
    for (let i = 1; i <= 50; i += 1) assert.equal(outcome(i, 'c1'), 'Done');
    await run(10 * minute);
    const calls = runsOf('c0');
    assert.ok(calls >= 15 && calls <= 70, `${calls} calls`);
    const attemptsOf = (name: string): number =>
      world.inventory
        .records()
        .filter(({ record }) => record.component === name)
        .reduce((sum, { record }) => sum + record.attempt, 0);
    assert.deepEqual([attemptsOf('c0'), attemptsOf('c1')], [calls, 0]);
    component.isDown = false;
    await run(35 * second);
    assert.equal(attemptsOf('c0'), 0);
    for (let i = 1; i <= 50; i += 1) assert.equal(outcome(i, 'c0'), 'Done');
  });
});

describe('a component that hangs', () => {
  it('does not delay other components, nor other entries beyond its timeout', async () => {
    const hangs = componentOf('c0', { durationMs: 10 * hour }, { maxConcurrent: 2, timeoutSeconds: 1 });
    const { run, outcome } = await begin([hangs, componentOf('c1'), componentOf('c2', { needs: ['c1'] })], 20);
    await run(second);
    for (let i = 1; i <= 20; i += 1) assert.equal(outcome(i, 'c2'), 'Done');
    await run(12 * second);
    for (let i = 1; i <= 20; i += 1) assert.equal(outcome(i, 'c0'), 'Retry');
  });
});

describe('components that never converge', () => {
  it('are slowed down, and their livelock is reported', async () => {
    const components = [
      componentOf('c0', { likes: ['c1'], value: ([spec = 0, other = 0]) => (spec + other) % 2, durationMs: 10 }),
      componentOf('c1', { likes: ['c0'], value: ([other = 0]) => other, durationMs: 10 }),
    ];
    const { world, manager, run, uidOf } = await begin(components);
    await run(hour);
    const from = world.log.length;
    await run(hour);
    assert.ok(world.log.length - from <= 2 * 150, `${world.log.length - from} runs an hour`);
    const reported = manager.inMemory.recorded.filter(({ reason }) => reason === 'Livelock');
    assert.equal(reported.length, 2);
    const livelock = world.entry(uidOf(1))?.conditions.find(({ type }) => type === 'Livelock');
    assert.equal(livelock?.status, 'True');
  });
});

describe('a storm', () => {
  it('of keys that are due by time does not delay manual changes (I23)', async () => {
    const component = componentOf('c0', {}, { maxConcurrent: 4 });
    const { world, run, edit, uidOf } = await begin([component], 400);
    await run(minute);
    // All keys are due within twelve seconds: many more than there are slots.
    world.register('c0');
    await run(6 * second);
    const latencies: number[] = [];
    for (let i = 381; i <= 400; i += 1) {
      const from = world.log.length;
      const begun = world.time.now;
      edit(i, { a: 2 });
      await run(250);
      const call = world.log.slice(from).find(({ key }) => key === `${uidOf(i)}/c0`);
      latencies.push((call?.at ?? Number.POSITIVE_INFINITY) - begun);
    }
    assert.ok(Math.max(...latencies) <= 250, `${Math.max(...latencies)} ms`);
    const waiting = world.inventory.records().filter(({ record }) => !record.reasons.includes('RegistrationChanged'));
    assert.ok(waiting.length > 50, `the storm was over: ${waiting.length} of 400 keys were waiting`);
  });
});
