import { seededRandom } from '../random.ts';
import { type Graph, isEndless, randomComponents } from './random-components.ts';
import { checkDeleted, checkEnd, checkSlots, wrongOutput } from './schedule-end.ts';
import { ScheduleStage } from './schedule-stage.ts';
import { assertInvariant } from './violation.ts';
import { SimulatedWorld } from './world.ts';

const second = 1000;
const minute = 60 * second;
/** Longer than any deadline, backoff, relist interval, clock error, and NotReady delay. */
const quietMs = 18 * minute;
/** Longer than the delay after Failed. */
const longQuietMs = 80 * minute;
/** Maximum time until a waiting component is triggered. */
const soonMs = 6 * minute;
const maxEvents = 100_000;

/** Result of a schedule, to prove that it tested something. */
export interface ScheduleReport {
  readonly events: number;
  readonly runs: number;
  readonly graph: Graph;
  /** Number of actions and checks, by name. */
  readonly happened: ReadonlyMap<string, number>;
  /** Each retry delay as a share of the longest backoff. */
  readonly backoffs: { readonly sum: number; readonly count: number };
}

/**
 * Runs one random schedule: components that read each other; users who edit, force, suspend, disable, delete, abandon, and recreate;
 * changing registrations; rotated kubeconfigs; expiring tokens; managers that crash, pause during a takeover, and have clock jumps; lost
 * calls and requests; an entry whose handling fails. Then a quiet period follows, and every invariant must hold. Throws a Violation.
 */
export async function runSchedule(seed: number): Promise<ScheduleReport> {
  const random = seededRandom(seed);
  const kind = random();
  const graph: Graph = kind < 0.7 ? 'acyclic' : kind < 0.975 ? 'circles' : 'endless';
  const world = new SimulatedWorld(random, randomComponents(random, graph));
  const { time } = world;
  const stage = new ScheduleStage(world);
  world.faulty = true;
  world.isLossy = world.chance(0.4);
  world.isSevere = graph !== 'endless' && world.chance(0.1);
  if (world.chance(0.5)) world.tokenMs = world.between(1, 15) * second;
  const faultMs = world.between(5, 40) * second;
  let events = 0;
  const runFor = async (ms: number): Promise<void> => {
    events += await time.runUntil(time.now + ms, maxEvents);
  };
  try {
    stage.begin(faultMs);
    await runFor(faultMs);
    world.faulty = false;
    stage.calm();
    await runFor(soonMs);
    if (!world.isSevere) checkDeleted(world);
    await runFor((world.isSevere ? longQuietMs : quietMs) - soonMs);
    // An interval may just have expired. Components that never converge are never idle.
    const isAtRest = (): boolean =>
      world.inventory.records().every(({ record }) => record.phase === 'Idle' || isEndless({ name: record.component }));
    for (let i = 0; i < 60 && !isAtRest(); i += 1) await runFor(second);
    checkEnd(world, stage);
    if (graph === 'acyclic') {
      // Inputs that changed and returned unobserved are repaired only by the interval.
      if (wrongOutput(world)) await runFor(100 * minute);
      const wrong = wrongOutput(world);
      assertInvariant(wrong === undefined, 'R31: outputs follow from inputs', () => wrong ?? '');
    }
    await checkSlots(world, runFor);
  } finally {
    for (const manager of world.managers) manager.stop();
  }
  return { events, runs: world.log.length, graph, happened: world.happened, backoffs: world.records.backoffs };
}
