import { seededRandom } from '../random.ts';
import { type Graph, isEndless, randomComponents } from './random-components.ts';
import { checkDeleted, checkEnd, checkSlots, wrongOutput } from './schedule-end.ts';
import { ScheduleStage } from './schedule-stage.ts';
import { hold } from './violation.ts';
import { SimulatedWorld } from './world.ts';

const second = 1000;
const minute = 60 * second;
/** Longer than any lease, backoff, relist and error of a clock, and than whoever waits for an input is left alone. */
const quietMs = 18 * minute;
/** Longer than whatever has failed for good waits. */
const longQuietMs = 80 * minute;
/** Longer than whoever waits is to wait before it is told. */
const soonMs = 6 * minute;
const maxEvents = 100_000;

/** What a schedule came to, for those who want to know that it was one. */
export interface ScheduleReport {
  readonly events: number;
  readonly runs: number;
  readonly graph: Graph;
  /** How often something was done or was at stake, by what it was. */
  readonly happened: ReadonlyMap<string, number>;
  /** Shares of the longest back-off that retries waited. */
  readonly backoffs: { readonly sum: number; readonly count: number };
}

/**
 * One random life of an inventory: components that read each other, users who edit, force, suspend, disable, delete, abandon and make
 * anew, registrations that change, kubeconfigs that are rotated, tokens that end, a manager that crashes, is paused while another
 * takes over, and whose clock jumps, calls and requests that get lost, an entry that breaks what looks after it. Then quiet, and
 * everything has to be as it should. Throws a Violation.
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
    // An interval may just be over. Those that never agree are never at rest.
    const isAtRest = (): boolean =>
      world.inventory.records().every(({ record }) => record.phase === 'Idle' || isEndless({ name: record.component }));
    for (let i = 0; i < 60 && !isAtRest(); i += 1) await runFor(second);
    checkEnd(world, stage);
    if (graph === 'acyclic') {
      // Inputs that changed and were back before anybody saw it are the one thing that only time repairs.
      if (wrongOutput(world)) await runFor(100 * minute);
      const wrong = wrongOutput(world);
      hold(wrong === undefined, 'R31: outputs follow from inputs', () => wrong ?? '');
    }
    await checkSlots(world, runFor);
  } finally {
    for (const manager of world.managers) manager.stop();
  }
  return { events, runs: world.log.length, graph, happened: world.happened, backoffs: world.records.backoffs };
}
