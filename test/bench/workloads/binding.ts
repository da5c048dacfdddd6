import { gathering, inParallel, now, type Watched } from '../support/api.ts';
import { type BindingBenchStage, isSynced, type SideName } from '../support/binding-stage.ts';
import type { Figures } from '../support/figures.ts';
import { byHandOf, watched } from './binding-by-hand.ts';

const limitMs = 300_000;
let run = 0;

/**
 * One round: creates `count` objects in the consumer, writes their statuses in the provider, and deletes the objects in the consumer. Before
 * each step, it makes the same writes to unbound objects in the same cluster, over the same connections, while the konnector is idle: first
 * alone, then together with the writes that a konnector adds.
 */
export async function syncRound(stage: BindingBenchStage, count: number): Promise<Figures> {
  const prefix = `round-${++run}-`;
  const name = (index: number): string => `${prefix}${index}`;
  const { bound, unbound } = stage;
  const cpu: number[] = [];
  const measured = async (work: (index: number) => Promise<unknown>, shows: readonly Shows[]): Promise<number[]> => {
    await stage.idle();
    const before = await stage.cpuMs();
    const result = await untilShown(stage, count, work, ...shows);
    await stage.idle();
    cpu.push((await stage.cpuMs()) - before);
    return result;
  };

  const byHand = byHandOf(stage, count, prefix);
  const floor = (work: (index: number) => Promise<unknown>): Promise<number> =>
    watched(stage, 1, () => inParallel(count, work));

  await stage.idle();
  const floorCreatesMs = await floor((index) => stage.create('consumer', unbound, name(index)));
  const upByHandMs = await byHand.up();
  const start = stage.mark();
  const [copiedMs = Number.NaN, heldMs = Number.NaN] = await measured(
    (index) => stage.create('consumer', bound, name(index)),
    [
      ['provider', isAdded],
      ['consumer', ({ object }) => isSynced(object)],
    ],
  );

  await inParallel(count, (index) => stage.create('provider', unbound, name(index)));
  await stage.idle();
  const floorStatusesMs = await floor((index) => stage.report('provider', unbound, name(index), 'done'));
  const downByHandMs = await byHand.down();
  const [downMs = Number.NaN] = await measured(
    (index) => stage.report('provider', bound, name(index), 'done'),
    [['consumer', isDone]],
  );
  const written = stage.mark();
  const consumerWrites = stage.writes('consumer', start);
  const providerWrites = stage.writes('provider', start);

  await inParallel(count, (index) => stage.report('consumer', unbound, name(index), 'done'));
  const floorDeletesMs = await floor((index) => stage.remove('consumer', unbound, name(index)));
  const deletesByHandMs = await byHand.deletes();
  const deletions = await measured(
    (index) => stage.remove('consumer', bound, name(index)),
    [
      ['consumer', isDeleted],
      ['provider', isDeleted],
    ],
  );
  const deletesMs = Math.max(...deletions);
  const deleteWrites = stage.writes('consumer', written) + stage.writes('provider', written);
  await stage.clear('provider');

  return {
    floorCreatesMs,
    upMs: copiedMs,
    upRatio: copiedMs / floorCreatesMs,
    upByHandRatio: upByHandMs / floorCreatesMs,
    upOverByHand: copiedMs / upByHandMs,
    heldMs,
    heldRatio: heldMs / floorCreatesMs,
    floorStatusesMs,
    downMs,
    downRatio: downMs / floorStatusesMs,
    downByHandRatio: downByHandMs / floorStatusesMs,
    downOverByHand: downMs / downByHandMs,
    floorDeletesMs,
    deletesMs,
    deletesRatio: deletesMs / floorDeletesMs,
    deletesByHandRatio: deletesByHandMs / floorDeletesMs,
    deletesOverByHand: deletesMs / deletesByHandMs,
    consumerWritesAnObject: consumerWrites / count,
    providerWritesAnObject: providerWrites / count,
    writesADelete: deleteWrites / count,
    cpuMsAnObject: cpu.reduce((sum, ms) => sum + ms, 0) / count,
  };
}

/** Events of the bound kind in one cluster. */
type Shows = readonly [side: SideName, matches: (event: Watched) => boolean];

const isAdded = ({ type }: Watched): boolean => type === 'ADDED';
const isDeleted = ({ type }: Watched): boolean => type === 'DELETED';
const isDone = ({ object }: Watched): boolean => object.status?.result === 'done';

/** For each of `shows`, the milliseconds from the first `work` until the watch of its cluster has shown all `count` objects. */
async function untilShown(
  stage: BindingBenchStage,
  count: number,
  work: (index: number) => Promise<unknown>,
  ...shows: readonly Shows[]
): Promise<number[]> {
  const watches = shows.map(async ([side, matches]) => {
    const { seen, all } = gathering(count, `objects seen in the ${side}`, limitMs);
    const stop = await stage.side(side).api.watch(stage.everywhere(stage.bound), (event) => {
      if (matches(event)) seen(event.object.metadata.name, event.atMs);
    });
    return { all, stop };
  });
  const opened = await Promise.all(watches);
  try {
    const start = now();
    await inParallel(count, work);
    return (await Promise.all(opened.map(({ all }) => all))).map((atMs) => atMs - start);
  } finally {
    for (const { stop } of opened) stop();
  }
}
