import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../../support/percentile.ts';
import { gathering, now, type Watched } from '../support/api.ts';
import { type BindingBenchStage, isSynced } from '../support/binding-stage.ts';
import type { Figures } from '../support/figures.ts';

const limitMs = 30_000;
const namespaces = 5;
const updates = 100;
let run = 0;

/** Syncs objects in sequence, with a pause before each status write; then a few in new namespaces, and one whose status changes often. */
export async function loneRound(stage: BindingBenchStage, count: number): Promise<Figures> {
  const prefix = `lone-${++run}-`;
  const seen = await Watches.open(stage);
  try {
    await oneByOne(stage, seen, `${prefix}warm-`, 5);
    const { up, down } = await oneByOne(stage, seen, prefix, count);
    const first: number[] = [];
    for (let index = 0; index < namespaces; index++) first.push(await firstOf(stage, seen, `${prefix}new-${index}`));
    const statuses = await manyStatuses(stage, seen, `${prefix}0`);
    await Promise.all([...seen.left].map((name) => stage.remove('consumer', stage.bound, name)));
    return {
      loneUpP50Ms: percentile(up, 0.5),
      loneUpP99Ms: percentile(up, 0.99),
      loneDownP50Ms: percentile(down, 0.5),
      loneDownP99Ms: percentile(down, 0.99),
      firstOfNamespaceP50Ms: percentile(first, 0.5),
      ...statuses,
    };
  } finally {
    seen.close();
  }
}

/** Milliseconds from sending the create, or the status, until the other cluster's watch shows it. */
async function oneByOne(stage: BindingBenchStage, seen: Watches, prefix: string, count: number) {
  const up: number[] = [];
  const down: number[] = [];
  for (let index = 0; index < count; index++) {
    const name = `${prefix}${index}`;
    const copied = seen.next('provider', ({ type, object }) => type === 'ADDED' && object.metadata.name === name);
    const synced = seen.next('consumer', ({ object }) => object.metadata.name === name && isSynced(object));
    const created = now();
    await stage.create('consumer', stage.bound, name);
    up.push((await copied) - created);
    await synced;
    await sleep(20);
    const shown = seen.next(
      'consumer',
      ({ object }) => object.metadata.name === name && object.status?.result === 'on',
    );
    const reported = now();
    await stage.report('provider', stage.bound, name, 'on');
    down.push((await shown) - reported);
    await sleep(20);
    seen.left.add(name);
  }
  return { up, down };
}

async function firstOf(stage: BindingBenchStage, seen: Watches, namespace: string): Promise<number> {
  const copied = seen.next('provider', ({ type, object }) => type === 'ADDED' && object.metadata.name === namespace);
  const start = now();
  await stage.createInNew(namespace, namespace);
  return (await copied) - start;
}

/** The status of one object changes 100 times within a second. */
async function manyStatuses(stage: BindingBenchStage, seen: Watches, name: string): Promise<Figures> {
  await stage.idle();
  const mark = stage.mark();
  let shown = '';
  const stop = seen.every('consumer', ({ object }) => {
    if (object.metadata.name === name) shown = object.status?.result ?? '';
  });
  const start = now();
  for (let index = 1; index <= updates; index++) {
    await stage.report('provider', stage.bound, name, `value ${index}`);
    await sleep(Math.max(0, start + (index * 1000) / updates - now()));
  }
  const updatesMs = now() - start;
  await stage.idle();
  stop();
  return {
    updatesMs,
    statusWrites: stage.writes('consumer', mark, name),
    lastValueWins: shown === `value ${updates}` ? 1 : 0,
  };
}

type Listener = (event: Watched) => void;

/** One watch of the bound kind per cluster, kept open, so that no figure includes the opening. */
class Watches {
  /** Names of objects to remove at the end. */
  readonly left = new Set<string>();
  readonly #listeners = { consumer: new Set<Listener>(), provider: new Set<Listener>() };
  #stops: readonly (() => void)[] = [];

  static async open(stage: BindingBenchStage): Promise<Watches> {
    const seen = new Watches();
    seen.#stops = await Promise.all(
      (['consumer', 'provider'] as const).map((side) =>
        stage.side(side).api.watch(stage.everywhere(stage.bound), (event) => {
          for (const listener of [...seen.#listeners[side]]) listener(event);
        }),
      ),
    );
    return seen;
  }

  every(side: 'consumer' | 'provider', listener: Listener): () => void {
    this.#listeners[side].add(listener);
    return () => void this.#listeners[side].delete(listener);
  }

  /** When the next such event arrives. */
  next(side: 'consumer' | 'provider', matches: (event: Watched) => boolean): Promise<number> {
    const { seen, all } = gathering(1, `events seen in the ${side}`, limitMs);
    const stop = this.every(side, (event) => {
      if (!matches(event)) return;
      stop();
      seen(event.object.metadata.name, event.atMs);
    });
    return all;
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }
}
