import { deferred } from '../../../src/kit/promises.ts';
import { type Api, inParallel, now } from '../support/api.ts';
import type { Figures } from '../support/figures.ts';
import type { BenchStage, Template } from '../support/stage.ts';

const limitMs = 120_000;
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

/** Creates `count` requests at once. Resolves to the milliseconds until the last one is Ready. */
export async function burstOfRequests(stage: BenchStage, count: number, template: Template): Promise<number> {
  const prefix = `burst-${++run}-`;
  const ready = new Set<string>();
  const allReady = deferred<number>();
  const stop = await stage.alice.watch(stage.path('podaccessrequests'), ({ object, atMs }) => {
    if (!object.metadata.name.startsWith(prefix) || object.status?.ready !== true) return;
    ready.add(object.metadata.name);
    if (ready.size === count) allReady.resolve(atMs);
  });
  const timer = setTimeout(
    () => allReady.reject(new Error(`${ready.size} of ${count} requests were Ready in time`)),
    limitMs,
  );
  try {
    const start = now();
    await inParallel(count, (index) => stage.request(`${prefix}${index}`, template, '1h'));
    return (await allReady.promise) - start;
  } finally {
    clearTimeout(timer);
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
  const burstMs = await burstOfRequests(stage, count, template);
  const cpu = (await stage.cpuMs()) - cpuBefore;
  const { calls, writes } = stage.calls(mark);
  await stage.clear();
  const waitMs = template === 'slow' ? 3000 : 0;
  return {
    floorMs,
    sameRightsFloorMs,
    burstMs,
    ratio: (burstMs - waitMs) / floorMs,
    sameRightsRatio: (burstMs - waitMs) / sameRightsFloorMs,
    cpuMsARequest: cpu / count,
    callsARequest: calls / count,
    writesARequest: writes / count,
  };
}
