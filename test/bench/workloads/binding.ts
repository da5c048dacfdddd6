import { deferred } from '../../../src/kit/promises.ts';
import { inParallel, now } from '../support/api.ts';
import { type BindingBenchStage, isSynced } from '../support/binding-stage.ts';
import type { Figures } from '../support/figures.ts';
import { ByHand, watched } from './binding-by-hand.ts';

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
  const { unbound } = stage;
  const cpu: number[] = [];
  const measured = async <T>(work: () => Promise<T>): Promise<T> => {
    await stage.idle();
    const before = await stage.cpuMs();
    const result = await work();
    await stage.idle();
    cpu.push((await stage.cpuMs()) - before);
    return result;
  };

  const byHand = new ByHand(stage, count, prefix);
  const floor = (work: (index: number) => Promise<unknown>): Promise<number> =>
    watched(stage, 1, () => inParallel(count, work));

  await stage.idle();
  const floorCreatesMs = await floor((index) => stage.create('consumer', unbound, name(index)));
  const upByHandMs = await byHand.up();
  const start = stage.mark();
  const up = await measured(() => creates(stage, count, prefix));

  await inParallel(count, (index) => stage.create('provider', unbound, name(index)));
  await stage.idle();
  const floorStatusesMs = await floor((index) => stage.report('provider', unbound, name(index), 'done'));
  const downByHandMs = await byHand.down();
  const downMs = await measured(() => statuses(stage, count, prefix));
  const written = stage.mark();
  const consumerWrites = stage.writes('consumer', start);
  const providerWrites = stage.writes('provider', start);

  await inParallel(count, (index) => stage.report('consumer', unbound, name(index), 'done'));
  const floorDeletesMs = await floor((index) => stage.remove('consumer', unbound, name(index)));
  const deletesByHandMs = await byHand.deletes();
  const deletesMs = await measured(() => deletes(stage, count, prefix));
  const deleteWrites = stage.writes('consumer', written) + stage.writes('provider', written);
  await stage.clear('provider');

  return {
    floorCreatesMs,
    upMs: up.copiedMs,
    upRatio: up.copiedMs / floorCreatesMs,
    upByHandRatio: upByHandMs / floorCreatesMs,
    upOverByHand: up.copiedMs / upByHandMs,
    heldMs: up.heldMs,
    heldRatio: up.heldMs / floorCreatesMs,
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

/** Milliseconds from the first create until the provider's watch shows the last copy and each object records its copy. */
async function creates(
  stage: BindingBenchStage,
  count: number,
  prefix: string,
): Promise<{ readonly copiedMs: number; readonly heldMs: number }> {
  const { bound, consumer, provider } = stage;
  const copied = gathering(count, 'copies in the provider');
  const held = gathering(count, 'objects with the name of their copy');
  const stops = await Promise.all([
    provider.api.watch(stage.everywhere(bound), ({ type, object, atMs }) => {
      if (type === 'ADDED') copied.seen(object.metadata.name, atMs);
    }),
    consumer.api.watch(stage.everywhere(bound), ({ object, atMs }) => {
      if (isSynced(object)) held.seen(object.metadata.name, atMs);
    }),
  ]);
  try {
    const start = now();
    await inParallel(count, (index) => stage.create('consumer', bound, `${prefix}${index}`));
    return { copiedMs: (await copied.all) - start, heldMs: (await held.all) - start };
  } finally {
    for (const stop of stops) stop();
  }
}

/** Milliseconds from the first status write in the provider until the consumer's watch shows the last one. */
async function statuses(stage: BindingBenchStage, count: number, prefix: string): Promise<number> {
  const { bound, consumer } = stage;
  const down = gathering(count, 'statuses in the consumer');
  const stop = await consumer.api.watch(stage.everywhere(bound), ({ object, atMs }) => {
    if (object.status?.result === 'done') down.seen(object.metadata.name, atMs);
  });
  try {
    const start = now();
    await inParallel(count, (index) => stage.report('provider', bound, `${prefix}${index}`, 'done'));
    return (await down.all) - start;
  } finally {
    stop();
  }
}

/** Milliseconds from the first delete in the consumer until both watches show the last deletion. */
async function deletes(stage: BindingBenchStage, count: number, prefix: string): Promise<number> {
  const { bound, consumer, provider } = stage;
  const gone = { consumer: gathering(count, 'objects gone'), provider: gathering(count, 'copies gone') };
  const stops = await Promise.all(
    (['consumer', 'provider'] as const).map((side) =>
      ({ consumer, provider })[side].api.watch(stage.everywhere(bound), ({ type, object, atMs }) => {
        if (type === 'DELETED') gone[side].seen(object.metadata.name, atMs);
      }),
    ),
  );
  try {
    const start = now();
    await inParallel(count, (index) => stage.remove('consumer', bound, `${prefix}${index}`));
    return Math.max(await gone.consumer.all, await gone.provider.all) - start;
  } finally {
    for (const stop of stops) stop();
  }
}

/** Resolves to the instant at which the watch showed the last of `count` names. */
function gathering(count: number, what: string): { seen(name: string, atMs: number): void; all: Promise<number> } {
  const names = new Set<string>();
  const { promise, resolve, reject } = deferred<number>();
  const timer = setTimeout(() => reject(new Error(`${names.size} of ${count} ${what} in time`)), limitMs);
  promise.catch(() => undefined);
  return {
    seen(name, atMs) {
      names.add(name);
      if (names.size < count) return;
      clearTimeout(timer);
      resolve(atMs);
    },
    all: promise,
  };
}
