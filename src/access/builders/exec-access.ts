import { createHash } from 'node:crypto';
import { type ExecAccessTemplateSpec, execAccessRequests } from '../../api/access/exec-access.ts';
import type { GrantedRule, GrantSession, GrantSubject } from '../../api/access/grant.ts';
import { requestLabel } from '../../api/access/names.ts';
import type { LabelSelector } from '../../api/object.ts';
import { replicaSets } from '../../api/resources.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import { isObjectName } from '../policy/names.ts';
import type { Violation } from '../policy/policy.ts';
import { sessionOf } from '../policy/session-policy.ts';
import { byNamespace } from '../stores/access-stores.ts';
import { targetKey } from '../stores/access-views.ts';
import { controllerOf, type PodView, type WorkloadView } from '../stores/cluster-views.ts';
import { type Builder, type Planned, planChildren, type RequestIdentity, targetNotFound } from './plan.ts';

export interface ExecPodInput {
  readonly requestUid: string;
  /** `spec.targetPod`. If set, no other pod can be chosen. */
  readonly targetPod?: string | undefined;
  readonly workload: SelectingWorkload;
  readonly pods: readonly PodView[];
  /** uids of the workload or its ReplicaSets: labels alone do not prove who owns a pod. */
  readonly controllers: ReadonlySet<string>;
}

type SelectingWorkload = Pick<WorkloadView, 'kind' | 'name' | 'selector'>;

interface Refused {
  readonly violation: Violation;
}

/**
 * The named pod, if it is a running one of the workload, or any running one, the same each time.
 * The caller pins it by uid. Codes `InvalidTemplate`, `InvalidTargetPod`, and `NoRunningPod`.
 */
export function chooseExecPod(input: ExecPodInput): { readonly pod: PodView } | Refused {
  const { requestUid, targetPod, workload, controllers } = input;
  const selected = selectedPods(input);
  if ('violation' in selected) return selected;
  const workloadPods = selected.pods.filter(({ controller }) => controller && controllers.has(controller.uid));
  if (targetPod) return namedPod(targetPod, workloadPods);
  const candidates = workloadPods.filter(isRunning).sort(byName);
  const pod = candidates[indexFor(requestUid, candidates.length)];
  if (pod) return { pod };
  const { kind, name } = workload;
  const scale = kind === 'DaemonSet' ? '' : ', or scale it up';
  return refuse('NoRunningPod', `${kind} ${name} has no running pod; wait for its rollout${scale}`, 404);
}

/** Never an access pod. */
function selectedPods({
  targetPod,
  workload,
  pods,
}: Omit<ExecPodInput, 'controllers'>): { readonly pods: readonly PodView[] } | Refused {
  const compiled = selectorOf(workload);
  if ('violation' in compiled) return compiled;
  const eligible = targetPod ? pods.filter(({ name }) => name === targetPod) : pods;
  // An access pod belongs to its requester, even if its template gives it the workload's labels.
  return { pods: eligible.filter(({ labels }) => compiled.matches(labels) && !Object.hasOwn(labels, requestLabel)) };
}

/** Code `InvalidTemplate`. */
export function selectorOf({
  kind,
  name,
  selector,
}: SelectingWorkload): { readonly matches: (labels: Readonly<Record<string, string>>) => boolean } | Refused {
  const compiled = compileSelector(selector);
  if ('error' in compiled)
    return refuse('InvalidTemplate', `the selector of ${kind} ${name} is invalid: ${compiled.error}; correct it`);
  if (!isEmpty(selector)) return compiled;
  return refuse('InvalidTemplate', `${kind} ${name} has no selector, so its pods are unknown; set its spec.selector`);
}

function namedPod(name: string, pods: readonly PodView[]): { readonly pod: PodView } | Refused {
  const [pod] = pods;
  // The same answer for a missing pod and another workload's, so that no caller learns which it is.
  if (!pod) {
    const found = `spec.targetPod ${JSON.stringify(name)} is not a pod of the template's workload`;
    return refuse('InvalidTargetPod', `${found}; name one of its running pods, or leave spec.targetPod out`, 404);
  }
  if (isRunning(pod)) return { pod };
  const state = pod.deleting ? 'being deleted' : pod.phase || 'in an unknown phase';
  const found = `pod ${name} is ${state}, not Running`;
  return refuse('InvalidTargetPod', `${found}; name another or leave spec.targetPod out`);
}

/** One call of `controllersOf` reads at most these. During a rollout, two or three have pods. */
const maxReplicaSets = 16;

/** uids of the workload's ReplicaSets that control `pods`, or of the workload itself. */
async function controllersOf(
  workload: WorkloadView,
  pods: readonly PodView[],
  client: Pick<Client, 'get'>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (workload.kind !== 'Deployment' && workload.kind !== 'Rollout') return new Set([workload.uid]);
  const namesByUid = new Map<string, string>();
  for (const { controller } of [...pods].sort(byName)) {
    const isReplicaSet = controller?.kind === replicaSets.kind && isObjectName(controller.name);
    if (isReplicaSet && namesByUid.size < maxReplicaSets) namesByUid.set(controller.uid, controller.name);
  }
  const { namespace } = workload;
  const ownUids = [...namesByUid].map(async ([uid, name]) => {
    const found = await findObject(client, replicaSets, { namespace, name }, { signal });
    const isOfWorkload = found?.metadata.uid === uid && controllerOf(found)?.uid === workload.uid;
    return isOfWorkload ? [uid] : [];
  });
  return new Set((await Promise.all(ownUids)).flat());
}

const isRunning = (pod: PodView): boolean => pod.phase === 'Running' && !pod.deleting;

const byName = (a: PodView, b: PodView): number => (a.name < b.name ? -1 : Number(a.name > b.name));

const isEmpty = (selector: LabelSelector | undefined): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0;

/** Spreads requests evenly over `count` indexes. With 48 bits, the bias is negligible. */
const indexFor = (uid: string, count: number): number =>
  count === 0 ? 0 : createHash('sha256').update(uid).digest().readUIntBE(0, 6) % count;

export function planExecAccess(input: {
  readonly request: RequestIdentity;
  readonly pod: { readonly name: string; readonly uid: string };
  readonly subjects: readonly GrantSubject[];
  readonly rules?: readonly GrantedRule[];
  readonly session?: GrantSession | undefined;
}): Planned {
  const { pod, ...rest } = input;
  const target = { name: pod.name, uid: pod.uid };
  return { plan: planChildren({ ...rest, requestResource: execAccessRequests, target }) };
}

function refuse(code: Violation['code'], message: string, status: Violation['status'] = 422): Refused {
  const field = code === 'InvalidTargetPod' ? { field: 'spec.targetPod' } : {};
  return { violation: { code, message, ...field, status } };
}

/** Chooses a pod only if `pinned` names none. */
export const buildExecAccess: Builder<ExecAccessTemplateSpec> = async (
  request,
  { spec, namespace },
  { subjects, pinned },
  { stores, client },
  signal,
) => {
  const planFor = (pod: { readonly name: string; readonly uid: string }): Planned =>
    planExecAccess({
      request,
      pod,
      subjects,
      rules: pinned?.rules ?? confinedTo(pod.name, rulesOf(spec.accessConfig)),
      session: pinned ? pinned.session : sessionOf(spec.accessConfig, request.spec.emergency),
    });
  if (pinned?.uid) return planFor({ name: pinned.name, uid: pinned.uid });
  const workload = stores.workload(targetKey(spec.controllerTargetRef, namespace));
  if (!workload) return { violation: targetNotFound(spec.controllerTargetRef, namespace) };
  const input = {
    requestUid: request.uid,
    targetPod: 'targetPod' in request.spec ? request.spec.targetPod : undefined,
    workload,
    pods: stores.pods.byIndex(byNamespace, request.namespace),
  };
  const selected = selectedPods(input);
  const matching = 'pods' in selected ? selected.pods : [];
  const pods = input.targetPod ? matching : matching.filter(isRunning);
  const controllers = await controllersOf(workload, pods, client, signal);
  const chosen = chooseExecPod({ ...input, controllers });
  return 'violation' in chosen ? chosen : planFor(chosen.pod);
};
