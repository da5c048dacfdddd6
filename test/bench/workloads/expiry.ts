import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../sandbox/wait.ts';
import { percentile } from '../../support/percentile.ts';
import { type ApiObject, connections, inParallel, now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage } from '../support/stage.ts';

let run = 0;

/** Milliseconds from each grant's deadline until the watch showed its RoleBinding deleted, in order of deletion. */
interface Expired {
  readonly lateMs: readonly number[];
  /** From the first deadline to the last deleted RoleBinding. */
  readonly spanMs: number;
  /** Time from the last grant being Ready to the first deadline; negative if the plane was too slow. */
  readonly spareMs: number;
}

/**
 * Grants whose creations, and so whose deadlines, are spread over `spreadMs`. Deadlines are whole seconds, so those of one second
 * fall together. `durationS` must leave the last one the time to be Ready before the first one ends.
 */
export function spreadExpiries(
  stage: BenchStage,
  count: number,
  spreadMs: number,
  durationS: number,
): Promise<Expired> {
  return expiries(stage, count, async (name, index, start) => {
    await sleep(Math.max(0, start + (index * spreadMs) / count - now()));
    return stage.request(name, 'instant', `${durationS}s`);
  });
}

/** Grants that all end in one second, `durationS` from now, but for those whose creation the turn of a second caught. */
export function burstOfExpiries(stage: BenchStage, count: number, durationS: number): Promise<Expired> {
  const turn = lanes();
  return expiries(stage, count, (name, _index, start) =>
    turn(() =>
      stage.request(name, 'instant', `${Math.floor(start / 1000) + durationS - Math.floor(Date.now() / 1000)}s`),
    ),
  );
}

/** Lets as many work at a time as there are connections, so that what each works out beforehand is still true when it is sent. */
function lanes(): <T>(work: () => Promise<T>) => Promise<T> {
  const free: Promise<unknown>[] = Array.from({ length: connections }, () => Promise.resolve());
  let next = 0;
  return (work) => {
    const index = next++ % connections;
    const result = (free[index] ?? Promise.resolve()).then(work);
    free[index] = result;
    return result;
  };
}

async function expiries(
  stage: BenchStage,
  count: number,
  ask: (name: string, index: number, startMs: number) => Promise<ApiObject>,
): Promise<Expired> {
  const prefix = `expiry-${++run}-`;
  const deadlines = new Map<string, number>();
  const goneAt = new Map<string, number>();
  const refused: string[] = [];
  let lastReadyMs = 0;
  const readies = new Set<string>();
  const stops = await Promise.all([
    stage.admin.watch(stage.path('podaccessrequests'), ({ type, object, atMs }) => {
      const { uid, name } = object.metadata;
      const expiresAt = object.status?.grant?.expiresAt;
      if (!name.startsWith(prefix)) return;
      if (expiresAt === undefined) {
        if (type === 'DELETED') refused.push(name);
        return;
      }
      deadlines.set(uid, Date.parse(expiresAt));
      if (object.status?.ready && !readies.has(uid)) lastReadyMs = atMs;
      if (object.status?.ready) readies.add(uid);
    }),
    stage.admin.watch(stage.path('rolebindings'), ({ type, object, atMs }) => {
      const owner = object.metadata.ownerReferences?.[0]?.uid;
      if (type === 'DELETED' && owner !== undefined) goneAt.set(owner, atMs);
    }),
  ]);
  try {
    const start = now();
    const asked: Promise<ApiObject>[] = [];
    const asking = Array.from({ length: count }, (_, index) => index);
    // Each waits for its own start time, so none delays another.
    for (const index of asking) asked.push(ask(`${prefix}${index}`, index, start));
    const requests = await Promise.all(asked);
    const uids = requests.map(({ metadata }) => metadata.uid);
    await until(
      'every RoleBinding to be gone',
      () => {
        if (refused.length > 0)
          throw new Error(`too slow to grant ${refused.length} of ${count} in time; ask for longer`);
        return uids.every((uid) => goneAt.has(uid));
      },
      { timeoutMs: 180_000, everyMs: 100 },
    );
    const ends = uids.map((uid) => deadlines.get(uid) ?? Number.NaN);
    return {
      lateMs: uids.map((uid, index) => (goneAt.get(uid) ?? Number.NaN) - (ends[index] ?? Number.NaN)),
      spanMs: Math.max(...goneAt.values()) - Math.min(...ends),
      spareMs: Math.min(...ends) - lastReadyMs,
    };
  } finally {
    for (const stop of stops) stop();
  }
}

/** One round of grants that end evenly over `spreadMs`. It cleans up after itself. */
export async function spreadRound(
  stage: BenchStage,
  count: number,
  spreadMs: number,
  durationS: number,
): Promise<Figures> {
  const { lateMs, spareMs } = await spreadExpiries(stage, count, spreadMs, durationS);
  await stage.clear();
  return { p50Ms: percentile(lateMs, 0.5), p99Ms: percentile(lateMs, 0.99), firstMs: Math.min(...lateMs), spareMs };
}

/** One round of grants that all end in one second, against the same number of bare deletes of RoleBindings. */
export async function burstRound(stage: BenchStage, count: number, durationS: number): Promise<Figures> {
  const floorMs = await bareDeletes(stage, count);
  const { lateMs, spanMs, spareMs } = await burstOfExpiries(stage, count, durationS);
  await stage.clear();
  return { floorMs, burstMs: spanMs, overFloorMs: spanMs - 1.2 * floorMs, p99Ms: percentile(lateMs, 0.99), spareMs };
}

async function bareDeletes(stage: BenchStage, count: number): Promise<number> {
  const collection = stage.path('rolebindings');
  const name = (index: number): string => `bare-${run}-${index}`;
  await inParallel(count, (index) =>
    stage.admin.call('POST', collection, {
      metadata: { name: name(index), labels: { 'bench/floor': 'true' } },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'ask' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
    }),
  );
  return inParallel(count, (index) => stage.admin.call('DELETE', `${collection}/${name(index)}`));
}
