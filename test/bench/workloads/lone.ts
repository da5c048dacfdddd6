import { percentile } from '../../support/percentile.ts';
import { now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage, Template } from '../support/stage.ts';

let run = 0;

interface Lone {
  /** From sending the create, or the vote if the template asks for approvals. */
  readonly toReadyMs: number;
  readonly podToReadyMs: number;
}

/** Requests in sequence, each with a pod that takes 200 ms: the time that a user waits without other load. */
export async function loneRound(stage: BenchStage, count: number): Promise<Figures> {
  await oneByOne(stage, Math.min(count, 5), () => 'quick');
  const mark = stage.plane.auditLog.mark();
  const cpuBefore = await stage.cpuMs();
  const all = await oneByOne(stage, count, () => 'quick');
  const cpu = (await stage.cpuMs()) - cpuBefore;
  const { calls, writes } = stage.calls(mark);
  await stage.clear();
  const podToReady = all.map(({ podToReadyMs }) => podToReadyMs);
  const createToReady = all.map(({ toReadyMs }) => toReadyMs);
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

/** As `loneRound`, in turn with `count` requests through the same template with approvals, which a second person approves. */
export async function approvedRound(stage: BenchStage, count: number): Promise<Figures> {
  const inTurn = (index: number): Template => (index % 2 === 0 ? 'quick' : 'quick-approved');
  await oneByOne(stage, 10, inTurn);
  const all = await oneByOne(stage, 2 * count, inTurn);
  await stage.clear();
  const toReady = (template: Template): number[] =>
    all.filter((_, index) => inTurn(index) === template).map(({ toReadyMs }) => toReadyMs);
  const createToReady = toReady('quick');
  const voteToReady = toReady('quick-approved');
  return {
    createToReadyP50Ms: percentile(createToReady, 0.5),
    createToReadyP99Ms: percentile(createToReady, 0.99),
    voteToReadyP50Ms: percentile(voteToReady, 0.5),
    voteToReadyP99Ms: percentile(voteToReady, 0.99),
    voteOverCreateP50Ms: percentile(voteToReady, 0.5) - percentile(createToReady, 0.5),
  };
}

async function oneByOne(stage: BenchStage, count: number, templateOf: (index: number) => Template): Promise<Lone[]> {
  const podReady = new Map<string, number>();
  const waiting = new Map<string, PromiseWithResolvers<number>>();
  const reached = (name: string, state: 'Pending' | 'Ready'): Promise<number> => {
    const atMs = Promise.withResolvers<number>();
    waiting.set(`${name} ${state}`, atMs);
    return atMs.promise;
  };
  const stops = await Promise.all([
    stage.admin.watch(stage.path('pods'), ({ object, atMs }) => {
      const owner = object.metadata.ownerReferences?.[0]?.uid;
      const ready = object.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      if (owner !== undefined && ready && !podReady.has(owner)) podReady.set(owner, atMs);
    }),
    stage.alice.watch(stage.path('podaccessrequests'), ({ object, atMs }) => {
      const state = object.status?.ready ? 'Ready' : object.status?.approval?.state;
      waiting.get(`${object.metadata.name} ${state}`)?.resolve(atMs);
    }),
  ]);
  const prefix = `lone-${++run}-`;
  const results: Lone[] = [];
  try {
    for (let index = 0; index < count; index++) {
      const name = `${prefix}${index}`;
      const template = templateOf(index);
      const pending = reached(name, 'Pending');
      const ready = reached(name, 'Ready');
      let start = now();
      const { metadata } = await stage.request(name, template, '1h');
      if (template === 'quick-approved') {
        await pending;
        start = now();
        await stage.approve(name);
      }
      const readyMs = await ready;
      // The watch of pods may lag behind the watch of requests.
      const podMs = podReady.get(metadata.uid) ?? readyMs;
      results.push({ toReadyMs: readyMs - start, podToReadyMs: readyMs - podMs });
    }
    return results;
  } finally {
    for (const stop of stops) stop();
  }
}
