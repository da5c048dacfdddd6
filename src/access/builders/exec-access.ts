import { createHash } from 'node:crypto';
import { type ExecAccessTemplateSpec, execAccessRequests } from '../../api/access/exec-access.ts';
import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import { requestLabel } from '../../api/access/names.ts';
import type { LabelSelector } from '../../api/object.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import { byNamespace } from '../stores/access-stores.ts';
import { targetKey } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import { type Builder, type Planned, planChildren, type RequestIdentity } from './plan.ts';

export interface ExecPodInput {
  readonly requestUid: string;
  /** `spec.targetPod`: this pod or none. */
  readonly targetPod?: string | undefined;
  /** The workload's selector. */
  readonly selector: LabelSelector | undefined;
  /** The pods of the request's namespace. */
  readonly pods: readonly PodView[];
}

/**
 * The pod that an ExecAccessRequest opens: the named one, which must belong to the workload and be running, or one of the
 * workload's running pods. The same request and pods give the same pod; the caller chooses once and pins it by uid.
 */
export function chooseExecPod(input: ExecPodInput): { readonly pod: PodView } | { readonly violation: Violation } {
  const { requestUid, targetPod, selector, pods } = input;
  const compiled = compileSelector(selector);
  if ('error' in compiled)
    return refuse('InvalidSelector', `the workload's selector cannot be used: ${compiled.error}`);
  if (isEmpty(selector)) {
    return refuse('InvalidSelector', 'the workload has no selector, so it cannot be told which pods are its own');
  }
  // Somebody else's access pod is theirs alone, whatever labels its template gave it.
  const belongs = (pod: PodView): boolean => compiled.matches(pod.labels) && !Object.hasOwn(pod.labels, requestLabel);
  if (targetPod) return namedPod(targetPod, pods, belongs);
  const candidates = pods.filter((pod) => belongs(pod) && isRunning(pod)).sort(byName);
  const pod = candidates[indexFor(requestUid, candidates.length)];
  if (pod) return { pod };
  return refuse(
    'NoRunningPod',
    'the workload has no running pod; wait until it has one and create the request again',
    404,
  );
}

function namedPod(
  name: string,
  pods: readonly PodView[],
  belongs: (pod: PodView) => boolean,
): { readonly pod: PodView } | { readonly violation: Violation } {
  const pod = pods.find((candidate) => candidate.name === name);
  // One answer for both: whoever may not see the other pods of the namespace learns nothing of them.
  if (!pod || !belongs(pod)) {
    return refuse(
      'InvalidTargetPod',
      `spec.targetPod ${JSON.stringify(name)} is not a pod of the template's workload`,
      404,
    );
  }
  if (isRunning(pod)) return { pod };
  const state = pod.deleting ? 'being deleted' : pod.phase || 'in an unknown phase';
  return refuse('InvalidTargetPod', `pod ${name} is ${state}, not Running; name another or leave spec.targetPod out`);
}

const isRunning = (pod: PodView): boolean => pod.phase === 'Running' && !pod.deleting;

const byName = (a: PodView, b: PodView): number => (a.name < b.name ? -1 : Number(a.name > b.name));

const isEmpty = (selector: LabelSelector | undefined): boolean =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0;

/** Spreads requests evenly over `count` places; 48 bits of the digest leave no bias worth speaking of. */
const indexFor = (uid: string, count: number): number =>
  count === 0 ? 0 : createHash('sha256').update(uid).digest().readUIntBE(0, 6) % count;

/** Plans the rights to exec into a pod that exists, pinned by uid. */
export function planExecAccess(input: {
  readonly request: RequestIdentity;
  readonly pod: { readonly name: string; readonly uid: string };
  readonly subjects: readonly GrantSubject[];
  readonly rules?: readonly GrantedRule[];
}): Planned {
  const { pod, ...rest } = input;
  const target = { name: pod.name, uid: pod.uid };
  return { plan: planChildren({ ...rest, requestResource: execAccessRequests, target }) };
}

function refuse(code: string, message: string, status: Violation['status'] = 422): { readonly violation: Violation } {
  const field = code === 'InvalidTargetPod' ? { field: 'spec.targetPod' } : {};
  return { violation: { code, message, ...field, status } };
}

/** Access to a running pod of a workload; the pod is chosen once and pinned by uid. */
export const buildExecAccess: Builder<ExecAccessTemplateSpec> = async (
  request,
  template,
  { subjects, pinned },
  { stores },
) => {
  const { spec, namespace } = template;
  const planFor = (pod: { readonly name: string; readonly uid: string }): Planned =>
    planExecAccess({
      request,
      pod,
      subjects,
      rules: pinned?.rules ?? confinedTo(pod.name, rulesOf(spec.accessConfig)),
    });
  if (pinned?.uid) return planFor({ name: pinned.name, uid: pinned.uid });
  const chosen = chooseExecPod({
    requestUid: request.uid,
    targetPod: 'targetPod' in request.spec ? request.spec.targetPod : undefined,
    selector: stores.workload(targetKey(spec.controllerTargetRef, namespace))?.selector,
    pods: stores.pods.byIndex(byNamespace, request.namespace),
  });
  return 'violation' in chosen ? { refusal: chosen.violation } : planFor(chosen.pod);
};
