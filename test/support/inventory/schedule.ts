import { seededRandom } from '../random.ts';
import { registrationOf } from './registrations.ts';
import { callbacks, valueFor } from './simulated-component.ts';
import { SimulatedMothership } from './simulated-mothership.ts';
import { hold, type SimComponent, type SimEntry, SimulatedWorld } from './simulated-world.ts';

const second = 1000;
const minute = 60 * second;
/** Longer than any lease, backoff, relist and error of a clock, and than whoever waits for an input is left alone. */
const quietMs = 18 * minute;
/** Longer than whatever has failed for good waits. */
const longQuietMs = 80 * minute;
const maxEvents = 60_000;
/** Each clock is wrong by so much at most: two of them differ by 5 minutes, and one jumps as far. */
const clockErrorMs = 2.5 * minute;

/** What a schedule came to, for those who want to know that it was one. */
export interface ScheduleReport {
  readonly events: number;
  readonly runs: number;
  readonly rejected: number;
  readonly isAcyclic: boolean;
  readonly deleted: number;
  readonly takeovers: number;
}

/**
 * One random life of an inventory: components that read each other, users who edit, force, suspend, delete and make anew, a mothership
 * that crashes, is paused while another takes over, and whose clock jumps, calls and requests that get lost. Then quiet, and everything
 * has to be as it should. Throws a Violation.
 */
export function runSchedule(seed: number): ScheduleReport {
  const random = seededRandom(seed);
  const isAcyclic = random() < 0.7;
  const world = new SimulatedWorld(random, randomComponents(random, isAcyclic));
  const stage = new Stage(world);
  world.faulty = true;
  world.isLossy = world.chance(0.4);
  world.isSevere = world.chance(0.1);
  const faultMs = world.between(5, 40) * second;
  stage.begin(faultMs);
  let events = world.time.runUntil(faultMs, maxEvents);
  world.faulty = false;
  for (const [uid, entry] of world.entries) if (entry.suspended) world.edit(uid, { suspended: false });
  events += world.time.runUntil(faultMs + (world.isSevere ? longQuietMs : quietMs), maxEvents);
  // An interval may just be over.
  for (let i = 0; i < 60 && !stage.leader?.isAtRest; i += 1) world.time.runUntil(world.time.now + second, maxEvents);
  checkEnd(world, stage);
  if (isAcyclic) {
    // Inputs that changed and were back before anybody saw it are the one thing that only time repairs.
    if (wrongOutput(world)) events += world.time.runUntil(world.time.now + 100 * minute, maxEvents);
    const wrong = wrongOutput(world);
    hold(wrong === undefined, 'R31: outputs follow from inputs', () => wrong ?? '');
  }
  const runs = [...world.calls.values()].reduce((sum, calls) => sum + calls, 0);
  return { events, runs, rejected: world.rejected, isAcyclic, deleted: stage.deleted, takeovers: stage.takeovers };
}

function randomComponents(random: () => number, isAcyclic: boolean): SimComponent[] {
  const below = (n: number): number => Math.floor(random() * n);
  const count = 1 + Math.min(below(8), below(8));
  const nameOf = (index: number): string => `c${index}`;
  return Array.from({ length: count }, (_, index) => {
    const others = Array.from({ length: isAcyclic ? index : count }, (_unused, other) => other)
      .filter((other) => other !== index && random() < 0.4)
      .map(nameOf);
    const needs = others.filter(() => random() < 0.6);
    return {
      registration: registrationOf(nameOf(index), {
        maxConcurrent: 1 + below(3),
        retry: { baseMs: 1000, capMs: 8000 },
        leaseMs: 20_000,
        maxRunMs: 120_000,
        timeoutMs: 2000,
        intervalMs: (30 + below(60)) * minute,
      }),
      needs,
      likes: others.filter((other) => !needs.includes(other)),
      specFields: random() < 0.5 ? ['a'] : [],
      // In circles values only grow, up to a bound, so that they come to rest.
      value: isAcyclic
        ? (inputs) => inputs.reduce((sum, input) => (sum * 31 + input + 7) % 97, index)
        : (inputs) => Math.min(9, 1 + Math.max(0, ...inputs)),
      patches: random() < 0.5,
      durationMs: 1 + below(300),
    };
  });
}

class Stage {
  readonly world: SimulatedWorld;
  readonly motherships = new Set<SimulatedMothership>();
  leader: SimulatedMothership | undefined;
  deleted = 0;
  takeovers = 0;
  #uids = 0;

  constructor(world: SimulatedWorld) {
    this.world = world;
    callbacks.set(world, (run, credential, what) => {
      let isTaken = false;
      for (const mothership of this.motherships) {
        if (!mothership.leads || mothership.paused) continue;
        const loop = mothership.loops.get(run.key);
        if (loop?.report(run.seq, credential, what)) isTaken = true;
      }
      return isTaken;
    });
  }

  begin(faultMs: number): void {
    const { world } = this;
    this.#takeOver();
    this.#create('e1');
    if (world.chance(0.3)) this.#create('e2');
    const actions = world.between(0, 12);
    for (let i = 0; i < actions; i += 1) world.time.after(world.between(0, faultMs - 1), () => this.#act());
  }

  #create(name: string): void {
    this.#uids += 1;
    this.world.create(name, `u${this.#uids}`, { a: this.world.between(0, 3) });
  }

  #takeOver(): void {
    this.takeovers += 1;
    const mothership = new SimulatedMothership(this.world, this.world.between(-clockErrorMs, clockErrorMs));
    this.motherships.add(mothership);
    this.leader = mothership;
    mothership.lead();
  }

  #act(): void {
    const { world } = this;
    const uids = [...world.entries.keys()];
    const uid = uids[world.between(0, uids.length - 1)];
    const entry = uid === undefined ? undefined : world.entries.get(uid);
    if (uid === undefined || !entry) return;
    const components = [...world.components.values()];
    const component = components[world.between(0, components.length - 1)];
    const { name } = component?.registration ?? { name: '' };
    const acts: readonly (() => void)[] = [
      () => world.edit(uid, { spec: { cluster: { a: world.between(0, 3) } } }),
      () => world.edit(uid, { spec: { cluster: { a: world.between(0, 3) } } }),
      () => this.#editAndBack(uid, entry.spec),
      () => world.edit(uid, { force: { ...entry.force, [name]: `${world.time.now}` } }),
      () => component && this.leader?.later(0, () => this.leader?.remote(uid, component)),
      () => world.edit(uid, { suspended: !entry.suspended }),
      () => this.#delete(uid),
      () => this.#create(entry.ref.name),
      () => this.#crash(),
      () => this.#pause(),
      () => this.#jump(),
    ];
    acts[world.between(0, acts.length - 1)]?.();
  }

  #editAndBack(uid: string, spec: SimEntry['spec']): void {
    this.world.edit(uid, { spec: { cluster: { a: 7 } } });
    this.world.time.after(this.world.between(1, 300), () => this.world.edit(uid, { spec }));
  }

  #delete(uid: string): void {
    this.deleted += 1;
    this.world.edit(uid, { deleting: true });
  }

  #jump(): void {
    if (this.leader) this.leader.skewMs = this.world.between(-clockErrorMs, clockErrorMs);
  }

  #crash(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    this.#end(leader);
    world.time.after(world.between(100, 6000), () => this.#takeOver());
  }

  /** It stands still, another one takes over, it goes on as if nothing had happened, and finds out. */
  #pause(): void {
    const { world, leader } = this;
    if (!leader) return;
    this.leader = undefined;
    leader.pause();
    world.time.after(5000, () => this.#takeOver());
    world.time.after(world.between(4000, 15_000), () => {
      leader.resume();
      world.time.after(world.between(0, 3000), () => this.#end(leader));
    });
  }

  #end(mothership: SimulatedMothership): void {
    this.motherships.delete(mothership);
    mothership.stop();
  }
}

function checkEnd(world: SimulatedWorld, stage: Stage): void {
  hold(stage.leader !== undefined, 'schedule', () => 'nobody leads');
  for (const entry of world.entries.values()) {
    const left = (): unknown =>
      [...(stage.leader?.loops.values() ?? [])].flatMap((loop) =>
        loop.uid === entry.ref.uid ? [[loop.key, loop.state]] : [],
      );
    const about = (): string =>
      JSON.stringify([entry.ref.uid, entry.spec, entry.outputs, entry.deleting, entry.deleting && left()]);
    hold(!entry.deleting, 'R33: what is deleted goes', about);
    for (const component of world.components.values()) {
      const { name } = component.registration;
      const key = `${entry.ref.uid}/${name}`;
      const record = world.records.get(key)?.record;
      const at = (): string =>
        `${name} ${about()} ${JSON.stringify(record)} ${JSON.stringify(stage.leader?.loops.get(key)?.state)}`;
      hold(record !== undefined, 'I8: no trigger is lost', at);
      hold(record.phase === 'Idle', 'I2: whatever ended is ended', at);
      const last = record.lastOutcome?.outcome;
      hold(
        record.inputsDigest === world.digest(entry, component),
        'I10, I11: the last run was about the inputs of now',
        at,
      );
      const isReady = component.needs.every((other) => entry.outputs[other] !== undefined);
      hold(last === (isReady ? 'Done' : 'NotReady'), 'I11: what can be done is done', at);
    }
  }
  for (const { record } of world.records.values()) {
    hold(world.entries.has(record.entry.uid), 'nothing is left of what is gone', () => JSON.stringify(record));
  }
}

/** The first component whose output is not what its inputs make it. */
function wrongOutput(world: SimulatedWorld): string | undefined {
  for (const { outputs, spec } of world.entries.values()) {
    for (const component of world.components.values()) {
      const { name } = component.registration;
      if (outputs[name]?.value !== valueFor(component, { outputs, spec })) return JSON.stringify([name, spec, outputs]);
    }
  }
  return undefined;
}
