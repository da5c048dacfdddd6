import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../sandbox/wait.ts';
import { percentile } from '../../support/percentile.ts';
import { type ApiObject, connections, inParallel, now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage } from '../support/stage.ts';

let run = 0;

/** The measured end of grants. */
interface Expired {
  /** From the deadline of each grant until the watch shows its RoleBinding deleted, in order of creation. */
  readonly lateMs: readonly number[];
  /** From the first deadline to the last deleted RoleBinding. */
  readonly spanMs: number;
  /** Time from the last grant being Ready to the first deadline; negative if the plane was too slow. */
  readonly spareMs: number;
}

/**
 * Grants whose creations, and so whose deadlines, are spread over `spreadMs`. Deadlines are whole seconds, so those of one second
 * coincide. `durationS` must be long enough that the last grant is Ready before the first one ends.
 */
export function spreadExpiries(
  stage: BenchStage,
  count: number,
  spreadMs: number,
  durationS: number,
): Promise<Expired> {
  const request = async (name: string, index: number, start: number): Promise<ApiObject> => {
    await sleep(Math.max(0, start + (index * spreadMs) / count - now()));
    return stage.request(name, 'instant', `${durationS}s`);
  };
  // Each waits for its own start time, so none delays another.
  return expiries(stage, count, request, count);
}

/** Grants that all end in one second, `durationS` from now, except those whose creation crosses the start of a second. */
export function burstOfExpiries(stage: BenchStage, count: number, durationS: number): Promise<Expired> {
  const request = (name: string, _index: number, start: number): Promise<ApiObject> =>
    stage.request(name, 'instant', `${Math.floor(start / 1000) + durationS - Math.floor(Date.now() / 1000)}s`);
  // One per connection at a time, so that a duration is still right when its request is sent.
  return expiries(stage, count, request, connections);
}

async function expiries(
  stage: BenchStage,
  count: number,
  request: (name: string, index: number, startMs: number) => Promise<ApiObject>,
  width: number,
): Promise<Expired> {
  const prefix = `expiry-${++run}-`;
  const deadlines = new Map<string, number>();
  const goneAt = new Map<string, number>();
  const refused: string[] = [];
  let lastReadyMs = 0;
  const readyUids = new Set<string>();
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
      if (object.status?.ready && !readyUids.has(uid)) lastReadyMs = atMs;
      if (object.status?.ready) readyUids.add(uid);
    }),
    stage.admin.watch(stage.path('rolebindings'), ({ type, object, atMs }) => {
      const owner = object.metadata.ownerReferences?.[0]?.uid;
      if (type === 'DELETED' && owner !== undefined) goneAt.set(owner, atMs);
    }),
  ]);
  try {
    const start = now();
    const uids: string[] = [];
    const create = async (index: number): Promise<void> => {
      uids[index] = (await request(`${prefix}${index}`, index, start)).metadata.uid;
    };
    await inParallel(count, create, width);
    await until(
      'every RoleBinding to be gone',
      () => {
        if (refused.length > 0)
          throw new Error(`the plane granted ${refused.length} of ${count} requests too late; set a longer DURATION`);
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

/** One round of grants that end evenly over `spreadMs`. Deletes all its objects. */
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

/** One round of grants that all end in one second, compared with as many bare deletes of RoleBindings. */
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
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'request-access' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
    }),
  );
  return inParallel(count, (index) => stage.admin.call('DELETE', `${collection}/${name(index)}`));
}
