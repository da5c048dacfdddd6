import assert from 'node:assert/strict';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { simComponent } from '../../../support/inventory/random-components.ts';
import { SimulatedMothership } from '../../../support/inventory/simulated-mothership.ts';
import { type SimComponent, SimulatedWorld } from '../../../support/inventory/simulated-world.ts';
import { StepStage } from '../../../support/inventory/step-stage.ts';
import { seededRandom } from '../../../support/random.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const componentOf = (
  name: string,
  rest: Partial<SimComponent> = {},
  registration: Partial<Registration> = {},
): SimComponent => simComponent(name, { specFields: ['a'], isSynchronous: true, ...rest }, registration);

/** A world without faults and its only mothership. */
function begin(components: readonly SimComponent[], entries = 1, seed = 1) {
  const world = new SimulatedWorld(seededRandom(seed), components);
  for (let i = 1; i <= entries; i += 1) world.create(`e${i}`, `u${i}`, { a: 1 });
  const mothership = new SimulatedMothership(world, 0);
  mothership.lead();
  const run = (ms: number): void => {
    world.time.runUntil(world.time.now + ms, 5_000_000);
  };
  const outcome = (uid: string, name: string): string | undefined =>
    world.records.get(`${uid}/${name}`)?.record.lastOutcome?.outcome;
  return { world, mothership, run, outcome };
}

const chainOf = (length: number, durationMs: (index: number) => number): SimComponent[] =>
  Array.from({ length }, (_, index) =>
    componentOf(`c${index}`, { needs: index === 0 ? [] : [`c${index - 1}`], durationMs: durationMs(index) }),
  );

/** Two to eight components; in half of the graphs they need all that they read. */
function randomGraph(random: () => number): SimComponent[] {
  const isNeeded = random() < 0.5 ? 1 : 0.6;
  return Array.from({ length: 2 + Math.floor(random() * 7) }, (_, index) => {
    const others = Array.from({ length: index }, (_unused, other) => `c${other}`).filter(() => random() < 0.5);
    const needs = others.filter(() => random() < isNeeded);
    const likes = others.filter((other) => !needs.includes(other));
    return componentOf(`c${index}`, { needs, likes, durationMs: 1 + Math.floor(random() * 300) });
  });
}

describe('components that nobody has put in order', () => {
  it('come to the same end in every order, a chain of n by at most 2 n runs', () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = seededRandom(seed);
      const length = 2 + (seed % 7);
      const shuffled = chainOf(length, () => 1 + Math.floor(random() * 300)).sort(() => random() - 0.5);
      const { world, run, outcome } = begin(shuffled, 1, seed);
      run(10 * second);
      for (let i = 0; i < length; i += 1) {
        assert.equal(outcome('u1', `c${i}`), 'Done', `seed ${seed}`);
        assert.equal(world.entries.get('u1')?.facts.outputs[`c${i}`]?.value, 2 + 2 * i, `seed ${seed}`);
      }
      assert.ok(world.log.length <= 2 * length, `seed ${seed}: ${world.log.length} runs of ${length}`);
    }
  });

  it('of any graph without circles come to the same end, each by one run and one more for each change of what it reads', () => {
    for (let seed = 0; seed < 300; seed += 1) {
      const random = seededRandom(seed);
      const components = randomGraph(random);
      const ends = [1, 2].map((order) => {
        const shuffled = [...components].sort(() => random() - 0.5);
        const { world, run } = begin(shuffled, 1, seed + order);
        const changes = new Map<string, number>();
        let before: Readonly<Record<string, unknown>> = {};
        world.watchers.add((_uid, entry) => {
          const outputs = entry?.facts.outputs ?? {};
          for (const name of Object.keys(outputs)) {
            if (outputs[name] !== before[name]) changes.set(name, (changes.get(name) ?? 0) + 1);
          }
          before = outputs;
        });
        run(20 * second);
        for (const { name, needs, likes } of components) {
          const runs = world.calls.get(name) ?? 0;
          const allowed = [...needs, ...likes].reduce((sum, other) => sum + (changes.get(other) ?? 0), 1);
          assert.ok(runs <= allowed, `seed ${seed}: ${runs} runs of ${name}, ${allowed} at most`);
        }
        // What only waits for what it needs has that at once: a run when it is made, and one for each input.
        const edges = components.reduce((sum, { needs }) => sum + needs.length, 0);
        if (components.every(({ likes }) => likes.length === 0)) {
          assert.ok(world.log.length <= components.length + edges, `seed ${seed}: ${world.log.length} runs`);
        }
        return world.entries.get('u1')?.facts.outputs;
      });
      assert.equal(Object.keys(ends[0] ?? {}).length, components.length, `seed ${seed}`);
      assert.deepEqual(ends[0], ends[1], `seed ${seed}`);
    }
  });

  it('converge in 1.5 s when they are five of 100 ms', () => {
    const { run, outcome } = begin(chainOf(5, () => 100));
    run(1.5 * second);
    assert.equal(outcome('u1', 'c4'), 'Done');
  });

  it('run at the same time once all inputs are there', () => {
    const { world, run } = begin(chainOf(5, () => 100));
    run(10 * second);
    const from = world.log.length;
    world.edit('u1', { force: { c0: '1', c1: '1', c2: '1', c3: '1', c4: '1' } });
    run(50);
    assert.equal(world.log.length - from, 5);
  });

  it('are each runnable alone', () => {
    const { world, run, outcome } = begin([componentOf('c7', { needs: ['c6'] })]);
    run(second);
    assert.equal(outcome('u1', 'c7'), 'NotReady');
    world.publish('u1', 'c6', 5);
    run(second);
    assert.equal(outcome('u1', 'c7'), 'Done');
  });
});

describe('triggers', () => {
  it('of N writes over T seconds make at most 2 + T/0.2 runs, the last of them about the last write', () => {
    const { world, run, outcome } = begin([componentOf('c0', { durationMs: 200 })]);
    const writes = 1000;
    for (let i = 0; i < writes; i += 1) {
      world.edit('u1', { spec: { cluster: { a: i } } });
      run(5);
    }
    run(10 * second);
    assert.equal(outcome('u1', 'c0'), 'Done');
    assert.equal(world.entries.get('u1')?.facts.outputs['c0']?.value, writes);
    assert.ok(world.log.length <= 2 + (writes * 5) / 200, `${world.log.length} runs`);
  });

  it('of 1,000 writes to what nobody reads make no run', () => {
    const { world, run } = begin([componentOf('c0')]);
    run(second);
    for (let i = 0; i < 1000; i += 1) {
      world.edit('u1', { spec: { cluster: { a: 1, other: i } } });
      run(5);
    }
    assert.equal(world.log.length, 1);
  });

  it('of a component’s own output make no run of it', () => {
    const { world, run } = begin([componentOf('c0')]);
    run(10 * minute);
    assert.equal(world.log.length, 1);
  });

  it('of inputs that change during a run and are back before it ends make another run, about what they are', () => {
    for (let backAt = 60; backAt <= 120; backAt += 2) {
      const { world, run } = begin([componentOf('c0')]);
      run(50);
      world.edit('u1', { spec: { cluster: { a: 5 } } });
      run(backAt - 50);
      world.edit('u1', { spec: { cluster: { a: 1 } } });
      run(5 * second);
      assert.equal(world.entries.get('u1')?.facts.outputs['c0']?.value, 2, `back at ${backAt} ms`);
    }
  });

  it('by time repair what was undone outside', () => {
    const { world, run } = begin([componentOf('c0')]);
    run(second);
    world.withdraw('u1', 'c0');
    run(1.1 * hour + second);
    assert.deepEqual(world.log[1]?.reasons, ['Interval']);
    assert.equal(world.entries.get('u1')?.facts.outputs['c0']?.value, 2);
  });

  it('by remote events run the component of that entry alone', () => {
    const component = componentOf('c0');
    const { world, mothership, run } = begin([component, componentOf('c1')], 3);
    run(second);
    const from = world.log.length;
    mothership.remote('u2', component);
    run(second);
    assert.deepEqual(
      world.log.slice(from).map(({ key, reasons }) => [key, reasons]),
      [['u2/c0', ['Remote']]],
    );
  });
});

describe('a component that waits for an input', () => {
  it('is run at most 7 times an hour, without an attempt counted', () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const { world, run } = begin([componentOf('c0', { needs: ['never'] })], 1, seed);
      run(hour);
      assert.ok(world.log.length <= 8 && world.log.length >= 5, `${world.log.length} runs`);
      assert.equal(world.records.get('u1/c0')?.record.attempt, 0);
    }
    const runs = Array.from({ length: 50 }, (_, seed) => {
      const { world, run } = begin([componentOf('c0', { needs: ['never'] })], 1, seed);
      run(hour);
      return world.log.length;
    });
    assert.ok(runs.reduce((sum, n) => sum + n, 0) / runs.length <= 7);
  });
});

describe('a fault that does not pass', () => {
  /** When a key runs that always answers Retry, milliseconds after its first run. */
  function retriesOf(seed: number, untilMs: number): number[] {
    const random = seededRandom(seed);
    const stage = new StepStage().running();
    const begun = stage.monotonicMs;
    const times: number[] = [];
    while (stage.monotonicMs - begun < untilMs) {
      stage.random = random();
      stage.outcome({ outcome: 'Retry' });
      stage.later(stage.effect('enqueue').delayMs).slot().started();
      times.push(stage.monotonicMs - begun);
    }
    return times.filter((time) => time < untilMs);
  }
  const keys = Array.from({ length: 1000 }, (_, seed) => retriesOf(seed, 30 * minute));

  it('is tried about 11 times in 10 minutes', () => {
    const tries = keys.map((times) => times.filter((time) => time < 10 * minute).length);
    const mean = tries.reduce((sum, n) => sum + n, 0) / tries.length;
    assert.ok(mean > 9 && mean < 14, `${mean} times`);
  });

  it('does not bring 1,000 keys back together: in no second more than 3 times the mean', () => {
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
  it('is probed, costs no attempt, and everything runs when it is back', () => {
    const component = componentOf('c0', { isDown: true });
    const { world, run, outcome } = begin([component, componentOf('c1')], 50);
    run(second);
    for (let i = 1; i <= 50; i += 1) assert.equal(outcome(`u${i}`, 'c1'), 'Done');
    run(10 * minute);
    const calls = world.calls.get('c0') ?? 0;
    assert.ok(calls >= 15 && calls <= 70, `${calls} calls`);
    for (const { record } of world.records.values()) assert.equal(record.attempt, 0);
    component.isDown = false;
    run(35 * second);
    for (let i = 1; i <= 50; i += 1) assert.equal(outcome(`u${i}`, 'c0'), 'Done');
  });
});

describe('a component that hangs', () => {
  it('delays neither other components nor, beyond its timeout, other entries', () => {
    const hangs = componentOf('c0', { durationMs: 10 * hour }, { maxConcurrent: 2, timeoutMs: 1000 });
    const { run, outcome } = begin([hangs, componentOf('c1'), componentOf('c2', { needs: ['c1'] })], 20);
    run(second);
    for (let i = 1; i <= 20; i += 1) assert.equal(outcome(`u${i}`, 'c2'), 'Done');
    run(12 * second);
    for (let i = 1; i <= 20; i += 1) assert.equal(outcome(`u${i}`, 'c0'), 'Retry');
  });
});

describe('components that never agree', () => {
  it('are slowed down, and their livelock is told', () => {
    const components = [
      componentOf('c0', { likes: ['c1'], value: ([spec = 0, other = 0]) => (spec + other) % 2, durationMs: 10 }),
      componentOf('c1', { likes: ['c0'], value: ([other = 0]) => other, durationMs: 10 }),
    ];
    const { world, mothership, run } = begin(components);
    run(hour);
    const from = world.log.length;
    run(hour);
    assert.ok(world.log.length - from <= 2 * 150, `${world.log.length - from} runs an hour`);
    assert.equal(mothership.loops.get('u1/c0')?.warnings, 1);
    assert.ok(mothership.loops.get('u1/c0')?.state.row?.livelock);
  });
});

describe('a storm', () => {
  it('of keys that are due by time does not hold up what somebody waits for', () => {
    const component = componentOf('c0', {}, { maxConcurrent: 4 });
    const { world, mothership, run } = begin([component], 400);
    run(minute);
    for (let i = 1; i <= 400; i += 1) mothership.trigger(`u${i}`, component, 'Retry');
    run(second);
    const from = world.log.length;
    const begun = world.time.now;
    for (let i = 381; i <= 400; i += 1) {
      world.edit(`u${i}`, { spec: { cluster: { a: 2 } } });
      run(100);
    }
    run(second);
    const changed = world.log.slice(from).filter(({ key }) => Number(/\d+/.exec(key)?.[0]) > 380);
    const latencies = changed.map(({ at, key }) => at - begun - 100 * (Number(/\d+/.exec(key)?.[0]) - 381));
    assert.equal(changed.length, 20);
    assert.ok(Math.max(...latencies) <= 250, `${Math.max(...latencies)} ms`);
  });
});

describe('a mothership that is killed', () => {
  it('with 200 runs in flight: everything is Done 15 s later, and no run was doubled', () => {
    const { world, mothership, run, outcome } = begin([componentOf('c0', {}, { maxConcurrent: 256 })], 200);
    run(60);
    assert.equal(world.log.length, 200);
    mothership.stop();
    run(5 * second);
    new SimulatedMothership(world, -2 * minute).lead();
    run(10 * second);
    for (let i = 1; i <= 200; i += 1) assert.equal(outcome(`u${i}`, 'c0'), 'Done');
    // One more each: what had answered to nobody.
    assert.equal(world.log.length, 400);
  });
});
