import { deferred } from '../../../src/kit/promises.ts';
import { percentile } from '../../support/percentile.ts';
import { now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage } from '../support/stage.ts';

let run = 0;

interface Lone {
  readonly createToReadyMs: number;
  readonly podToReadyMs: number;
}

/** Requests in sequence, each with a pod that takes 200 ms: the time that a user waits without other load. */
export async function loneRound(stage: BenchStage, count: number): Promise<Figures> {
  await oneByOne(stage, Math.min(count, 5));
  const mark = stage.plane.auditLog.mark();
  const cpuBefore = await stage.cpuMs();
  const all = await oneByOne(stage, count);
  const cpu = (await stage.cpuMs()) - cpuBefore;
  const { calls, writes } = stage.calls(mark);
  await stage.clear();
  const podToReady = all.map(({ podToReadyMs }) => podToReadyMs);
  const createToReady = all.map(({ createToReadyMs }) => createToReadyMs);
  return {
    podToReadyP50Ms: percentile(podToReady, 0.5),
    podToReadyP99Ms: percentile(podToReady, 0.99),
    createToReadyP50Ms: percentile(createToReady, 0.5),
    createToReadyP99Ms: percentile(createToReady, 0.99),
    cpuMsARequest: cpu / count,
    callsARequest: calls / count,
    writesARequest: writes / count,
  };
}

async function oneByOne(stage: BenchStage, count: number): Promise<Lone[]> {
  const podReady = new Map<string, number>();
  const waiting = new Map<string, ReturnType<typeof deferred<number>>>();
  const stops = await Promise.all([
    stage.admin.watch(stage.path('pods'), ({ object, atMs }) => {
      const owner = object.metadata.ownerReferences?.[0]?.uid;
      const ready = object.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      if (owner !== undefined && ready && !podReady.has(owner)) podReady.set(owner, atMs);
    }),
    stage.alice.watch(stage.path('podaccessrequests'), ({ object, atMs }) => {
      if (object.status?.ready) waiting.get(object.metadata.name)?.resolve(atMs);
    }),
  ]);
  const prefix = `lone-${++run}-`;
  const results: Lone[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const name = `${prefix}${index}`;
      const ready = deferred<number>();
      waiting.set(name, ready);
      const start = now();
      const { metadata } = await stage.request(name, 'quick', '1h');
      const readyMs = await ready.promise;
      // The watch of pods may lag behind the watch of requests.
      const podMs = podReady.get(metadata.uid) ?? readyMs;
      results.push({ createToReadyMs: readyMs - start, podToReadyMs: readyMs - podMs });
    }
    return results;
  } finally {
    for (const stop of stops) stop();
  }
}
