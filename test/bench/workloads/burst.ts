import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, type ApiObject, gathering, inParallel, now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage, Template } from '../support/stage.ts';

const limitMs = 120_000;
/** Time for the server to reconcile each pending request once more, after its own status write. */
const settleMs = 2_000;
let run = 0;

/**
 * The floor: creates `count` Pods, Roles, and RoleBindings in a bare loop, as the user of `api`. Resolves to the milliseconds until the last
 * create is answered. As in a burst, the plane starts the Pods meanwhile.
 */
export async function bareCreates(stage: BenchStage, api: Api, count: number): Promise<number> {
  const prefix = `floor-${++run}`;
  const labels = { 'bench/floor': 'true' };
  return inParallel(count, async (index) => {
    const name = `${prefix}-${index}`;
    await api.call('POST', stage.path('pods'), stage.pod(name));
    await api.call('POST', stage.path('roles'), {
      metadata: { name, labels },
      rules: [
        { apiGroups: [''], resources: ['pods'], resourceNames: [name], verbs: ['get', 'list', 'watch'] },
        { apiGroups: [''], resources: ['pods/exec'], resourceNames: [name], verbs: ['create', 'get'] },
      ],
    });
    await api.call('POST', stage.path('rolebindings'), {
      metadata: { name, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
    });
  });
}

interface Burst {
  /** Until the API server answered the last create of the burst, milliseconds. */
  readonly createsMs: number;
  /** Until the last request was Ready, milliseconds. */
  readonly burstMs: number;
}

/** One burst: of requests, or of votes on pending requests if the template asks for approvals. */
export const burstOf = (stage: BenchStage, count: number, template: Template): Promise<Burst> =>
  template === 'instant-approved' ? burstOfVotes(stage, count) : burstOfRequests(stage, count, template);

/** Creates `count` requests at once. */
export function burstOfRequests(stage: BenchStage, count: number, template: Template): Promise<Burst> {
  const prefix = `burst-${++run}-`;
  return untilAll(stage, { prefix, count, reached: isReady }, (name) => stage.request(name, template, '1h'));
}

/** Creates `count` requests, and approves them at once when all of them wait for it. */
async function burstOfVotes(stage: BenchStage, count: number): Promise<Burst> {
  const all = { prefix: `burst-${++run}-`, count };
  await untilAll(stage, { ...all, reached: isPending }, (name) => stage.request(name, 'instant-approved', '1h'));
  await sleep(settleMs);
  return untilAll(stage, { ...all, reached: isReady }, (name) => stage.approve(name));
}

const isReady = ({ status }: ApiObject): boolean => status?.ready === true;
const isPending = ({ status }: ApiObject): boolean => status?.approval?.state === 'Pending';

/** Runs `create` for `count` requests at once. Resolves when the last one is `reached`. */
async function untilAll(
  stage: BenchStage,
  { prefix, count, reached }: { readonly prefix: string; readonly count: number; reached(request: ApiObject): boolean },
  create: (name: string) => Promise<unknown>,
): Promise<Burst> {
  const all = gathering(count, 'requests reached the state', limitMs);
  const stop = await stage.alice.watch(stage.path('podaccessrequests'), ({ object, atMs }) => {
    if (object.metadata.name.startsWith(prefix) && reached(object)) all.seen(object.metadata.name, atMs);
  });
  try {
    const start = now();
    const createsMs = await inParallel(count, (index) => create(`${prefix}${index}`));
    return { createsMs, burstMs: (await all.all) - start };
  } finally {
    stop();
  }
}

/** One round: the floor, the burst, and the cost of the burst. Deletes all its objects. */
export async function burstRound(stage: BenchStage, count: number, template: Template): Promise<Figures> {
  const floorMs = await bareCreates(stage, stage.admin, count);
  await stage.clear();
  const sameRightsFloorMs = await bareCreates(stage, stage.peer, count);
  await stage.clear();
  const mark = stage.plane.auditLog.mark();
  const cpuBefore = await stage.cpuMs();
  const { createsMs, burstMs } = await burstOf(stage, count, template);
  const cpu = (await stage.cpuMs()) - cpuBefore;
  const { calls, writes } = stage.calls(mark);
  await stage.clear();
  const waitMs = template === 'slow' ? 3000 : 0;
  return {
    floorMs,
    sameRightsFloorMs,
    createsMs,
    burstMs,
    ratio: (burstMs - waitMs) / floorMs,
    sameRightsRatio: (burstMs - waitMs) / sameRightsFloorMs,
    cpuMsARequest: cpu / count,
    callsARequest: calls / count,
    writesARequest: writes / count,
  };
}
