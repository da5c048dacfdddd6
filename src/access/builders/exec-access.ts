import { createHash } from 'node:crypto';
import { type ExecAccessTemplateSpec, execAccessRequests } from '../../api/access/exec-access.ts';
import type { GrantedRule, GrantSession, GrantSubject } from '../../api/access/grant.ts';
import { requestLabel } from '../../api/access/names.ts';
import type { LabelSelector } from '../../api/object.ts';
import { replicaSets } from '../../api/resources.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import { isObjectName, listNames } from '../policy/names.ts';
import type { Violation } from '../policy/policy.ts';
import { sessionOf } from '../policy/session-policy.ts';
import { byNamespace } from '../stores/access-stores.ts';
import { targetKey } from '../stores/access-views.ts';
import { controllerOf, type PodView, type WorkloadView } from '../stores/cluster-views.ts';
import { type Builder, type Planned, planChildren, type RequestIdentity, targetNotFound } from './plan.ts';

/** Input of `chooseExecPod`. */
export interface ExecPodInput {
  readonly requestUid: string;
  /** `spec.targetPod`. If set, no other pod can be chosen. */
  readonly targetPod?: string | undefined;
  readonly workload: SelectingWorkload;
  /** The pods of the request's namespace. */
  readonly pods: readonly PodView[];
  /**
   * uids of the controllers of the workload's pods: the workload itself or its ReplicaSets. Labels alone do not prove that a pod belongs to
   * it.
   */
  readonly controllers: ReadonlySet<string>;
}

/** A workload whose controller selects its pods. */
type SelectingWorkload = Pick<WorkloadView, 'kind' | 'name' | 'selector'>;

interface Refused {
  readonly violation: Violation;
  /** The message without its remedy. Set if the workload does not have the requested pod, or if that pod is being deleted. */
  readonly lost?: string;
}

/**
 * Chooses the pod that an ExecAccessRequest opens: the named pod, which must belong to the workload and be running, or one of the
 * workload's running pods. The choice is deterministic. The caller chooses once and pins the pod by uid.
 * Codes `InvalidSelector`, `InvalidTargetPod`, and `NoRunningPod`.
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

/** The pods whose labels match the workload's selector, or the named pod if its labels match; never an access pod. */
function selectedPods({
  targetPod,
  workload,
  pods,
}: Omit<ExecPodInput, 'controllers'>): { readonly pods: readonly PodView[] } | Refused {
  const compiled = selectorOf(workload);
  if ('violation' in compiled) return compiled;
  const eligible = targetPod ? pods.filter(({ name }) => name === targetPod) : pods;
  // An access pod belongs to its requester, even if its template gives it the labels of the workload.
  return { pods: eligible.filter(({ labels }) => compiled.matches(labels) && !Object.hasOwn(labels, requestLabel)) };
}

/** The compiled selector of a workload. Code `InvalidSelector`. */
export function selectorOf({
  kind,
  name,
  selector,
}: SelectingWorkload): { readonly matches: (labels: Readonly<Record<string, string>>) => boolean } | Refused {
  const compiled = compileSelector(selector);
  if ('error' in compiled)
    return refuse('InvalidSelector', `the selector of ${kind} ${name} is invalid: ${compiled.error}; correct it`);
  if (!isEmpty(selector)) return compiled;
  return refuse('InvalidSelector', `${kind} ${name} has no selector, so its pods are unknown; set its spec.selector`);
}

function namedPod(name: string, pods: readonly PodView[]): { readonly pod: PodView } | Refused {
  const [pod] = pods;
  // The answer is the same for a missing pod and for a pod of another workload, so that a caller who cannot list pods does not learn
  // whether the other pod exists.
  if (!pod) {
    const lost = `spec.targetPod ${JSON.stringify(name)} is not a pod of the template's workload`;
    const message = `${lost}; name one of its running pods, or leave spec.targetPod out`;
    return { ...refuse('InvalidTargetPod', message, 404), lost };
  }
  if (isRunning(pod)) return { pod };
  const state = pod.deleting ? 'being deleted' : pod.phase || 'in an unknown phase';
  const found = `pod ${name} is ${state}, not Running`;
  const refused = refuse('InvalidTargetPod', `${found}; name another or leave spec.targetPod out`);
  return pod.deleting ? { ...refused, lost: found } : refused;
}

/** Maximum number of ReplicaSets that one call of `controllersOf` reads. During a rollout, a workload has pods of two or three. */
const maxReplicaSets = 16;

/**
 * uids of the controllers of a workload's pods: for a Deployment or Rollout, those of its ReplicaSets that control `pods`, at most 16; else
 * that of the workload itself. Rejects as the client does.
 */
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

/** Spreads requests evenly over `count` indexes. With 48 bits of the digest, the bias is negligible. */
const indexFor = (uid: string, count: number): number =>
  count === 0 ? 0 : createHash('sha256').update(uid).digest().readUIntBE(0, 6) % count;

/** Plans the Role and RoleBinding for an existing pod, pinned by uid. */
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

/** Plans access to a running pod of a workload. Chooses a pod only if `pinned` names none. */
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
  if (!('violation' in chosen)) return planFor(chosen.pod);
  const { violation, lost } = chosen;
  if (lost === undefined || workload.kind === 'StatefulSet') return chosen;
  const message = lostText(lost, workload, await runningPods(workload, input, client, signal));
  return { violation: { ...violation, message } };
};

/** The names of the workload's running pods except the requested one, sorted. Rejects as the client does. */
async function runningPods(
  workload: WorkloadView,
  input: Omit<ExecPodInput, 'controllers'>,
  client: Pick<Client, 'get'>,
  signal: AbortSignal,
): Promise<string[]> {
  const selected = selectedPods({ ...input, targetPod: undefined });
  const candidates = 'pods' in selected ? selected.pods : [];
  const running = candidates.filter((pod) => isRunning(pod) && pod.name !== input.targetPod).sort(byName);
  const controllers = await controllersOf(workload, running, client, signal);
  return running.filter(({ controller }) => controller && controllers.has(controller.uid)).map(({ name }) => name);
}

/** Why the requester needs a new request, and which pods it can name: only a StatefulSet creates a pod of an earlier name. */
function lostText(lost: string, { kind, name }: WorkloadView, running: readonly string[]): string {
  const why = `${lost}, and ${kind} ${name} never creates a pod of the same name again`;
  return running.length === 0
    ? `${why}; no pod of it is running now; wait for one, then create a new request without spec.targetPod`
    : `${why}; running now: ${listNames(running)}; create a new request that names one of these, or none`;
}
