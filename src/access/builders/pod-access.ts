import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import { planHashAnnotation } from '../../api/access/names.ts';
import { type PodAccessTemplateSpec, podAccessRequests } from '../../api/access/pod-access.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { pods, serviceAccounts } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { isRecord, type JsonObject, listIn, own, stringMap, strings } from '../../kit/json-value.ts';
import { findObject } from '../../kube/client.ts';
import { deletionGraceS } from '../../rbac/applier.ts';
import { renderAccessMessage } from '../policy/access-client.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import { isObjectName } from '../policy/request-policy.ts';
import { targetKey } from '../stores/access-views.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import {
  type AccessPods,
  type Builder,
  type BuilderDeps,
  childMetadata,
  type Planned,
  planChildren,
  type RequestIdentity,
} from './plan.ts';
import { type PlanBudget, withinBudget } from './plan-budget.ts';
import { checkPodReach, serviceAccountOf } from './pod-security-baseline.ts';
import { type Labels, labelsOf, type SelectionInput } from './pod-selection.ts';
import {
  type MutatedTemplate,
  mutatePodTemplate,
  type PodTemplate,
  underDefaultAccount,
  withoutIdentity,
} from './pod-template-mutation.ts';

/** activeDeadlineSeconds is an int32. */
const LONGEST_DEADLINE_S = 2 ** 31 - 1;

export interface PodAccessInput {
  readonly request: RequestIdentity;
  readonly templateSpec: PodAccessTemplateSpec;
  /** The workload in `controllerTargetRef`; ignored if the template has no such reference. */
  readonly workload: WorkloadView | undefined;
  /** The image pull secrets of the workload's ServiceAccount, for a pod that names none and runs under another ServiceAccount. */
  readonly pullSecrets: readonly string[];
  /** `oz`: the pod gets the ServiceAccount of the workload and none of its labels, whatever NetworkPolicies require. */
  readonly accessPods: AccessPods;
  /** All workloads of the namespace. */
  readonly workloads: readonly WorkloadView[];
  /** Services, PodDisruptionBudgets, and NetworkPolicies of the namespace. */
  readonly selectors: readonly SelectorView[];
  readonly subjects: readonly GrantSubject[];
  /** The rules that the grant fixed earlier. Default: those of the template. */
  readonly rules?: readonly GrantedRule[] | undefined;
  /** Granted duration, milliseconds. */
  readonly durationMs: number;
  /** Bounds the time of planning; absent for a plan that was granted before, of which only the work is bounded. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
}

/** Plans access to a dedicated pod, copied from a workload or defined in the template. */
export const buildPodAccess: Builder<PodAccessTemplateSpec> = async (
  request,
  { spec, namespace },
  { subjects, durationMs, pinned },
  { stores, client, queue, clock, accessPods },
  signal,
) => {
  const workload = spec.controllerTargetRef && stores.workload(targetKey(spec.controllerTargetRef, namespace));
  const pullSecrets = await pullSecretsOf(workload, spec, { client, accessPods }, signal);
  return queue.run(() =>
    planPodAccess({
      request,
      templateSpec: spec,
      workload,
      pullSecrets,
      accessPods,
      workloads: stores.workloadsIn(namespace),
      selectors: stores.selectorsIn(namespace),
      subjects,
      durationMs,
      rules: pinned?.rules,
      clock: pinned ? undefined : clock,
    }),
  );
};

/** Cost of checking, serializing, and hashing a pod, relative to copying it. */
const finishingFactor = 4;

/** The image pull secrets of the workload's ServiceAccount, if the access pod runs under another ServiceAccount and needs them. */
async function pullSecretsOf(
  workload: WorkloadView | undefined,
  { controllerTargetMutationConfig }: PodAccessTemplateSpec,
  { client, accessPods }: Pick<BuilderDeps, 'client' | 'accessPods'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const spec = own(workload?.podTemplate, 'spec');
  const name = serviceAccountOf(spec);
  const keeps = accessPods === 'oz' || keepsServiceAccount(controllerTargetMutationConfig);
  const needsNone = keeps || name === 'default' || listIn(spec, 'imagePullSecrets').length > 0;
  if (!workload || needsNone || !isObjectName(name)) return [];
  const { namespace } = workload;
  const account = await findObject(client, serviceAccounts, { namespace, name }, { signal });
  return strings(listIn(account, 'imagePullSecrets').map((secret) => own(secret, 'name')));
}

const keepsServiceAccount = (config: PodAccessTemplateSpec['controllerTargetMutationConfig']): boolean =>
  own(config, 'keepServiceAccount') === true;

/**
 * Plans a Pod for the requester, with the rights to exec into it. The Pod is copied from a workload or defined in the template; if both
 * are set, the workload wins. Its labels are those of podLabels and the patch, and the workload's labels that NetworkPolicies select by.
 * It gets the workload's ServiceAccount only if the template keeps it, and a mounted token only if podSpec or the patch sets it.
 * Refuses a plan that exceeds the budget with `PlanTooLarge`.
 */
export const planPodAccess = (input: PodAccessInput): Planned =>
  withinBudget((budget) => planWithin(budget, input), input.clock);

function planWithin(budget: PlanBudget, input: PodAccessInput): Planned {
  const { request, templateSpec, subjects } = input;
  const source = sourceOf(input);
  if ('refusal' in source) return source;
  const mutated = mutate(source, input, budget);
  if ('violation' in mutated) return { refusal: mutated.violation };
  const { template } = mutated;
  budget.spend(finishingFactor * mutated.weight);
  const original = source.workload && own(source.podTemplate, 'spec');
  const mayReach = templateSpec.allowPrivilegedPod === true;
  const account = keepsAccount(input) ? serviceAccountOf(original) : 'default';
  const refusal =
    (mayReach ? undefined : checkPodReach(template, original, account)) ??
    checkMounts(template.spec) ??
    checkMetadata(template);
  if (refusal) return { refusal };
  const ownLabels = childMetadata(request, podAccessRequests).labels ?? {};
  const selected = labelsOf(
    {
      labels: { ...stringMap(template.metadata['labels']), ...ownLabels },
      ownLabels,
      selectors: input.selectors,
      allowed: templateSpec.allowedSelectors,
      confinedAs: confinedAs(source, input),
    },
    budget,
  );
  if ('refusal' in selected) return selected;
  const pod = podOf(template, selected.labels, input);
  const unusable = checkAccessCommand(templateSpec.accessConfig.accessCommand, pod);
  if (unusable) return { refusal: unusable };
  const target = { name: pod.metadata.name };
  return {
    plan: planChildren({
      request,
      requestResource: podAccessRequests,
      target,
      subjects,
      rules: input.rules ?? confinedTo(target.name, rulesOf(templateSpec.accessConfig)),
      pod,
      notes: mutated.lowered,
    }),
  };
}

interface Source {
  readonly podTemplate: unknown;
  /** Absent if the template defines the pod in podSpec. */
  readonly workload?: WorkloadView;
}

/** Whether the access pod runs under the ServiceAccount of the workload. */
const keepsAccount = ({ accessPods, templateSpec }: PodAccessInput): boolean =>
  accessPods === 'oz' || keepsServiceAccount(templateSpec.controllerTargetMutationConfig);

/** Only a pod that is copied from a workload has a confinement to keep. */
function confinedAs({ podTemplate, workload }: Source, input: PodAccessInput): SelectionInput['confinedAs'] {
  if (!workload || input.accessPods === 'oz') return undefined;
  const { kind, name } = workload;
  const labels = stringMap(own(own(podTemplate, 'metadata'), 'labels'));
  return { kind, name, labels, workloads: input.workloads };
}

function sourceOf({ request, templateSpec, workload }: PodAccessInput): Source | { readonly refusal: Violation } {
  const ref = templateSpec.controllerTargetRef;
  if (!ref) {
    if (templateSpec.podSpec) return { podTemplate: { spec: templateSpec.podSpec } };
    const message = 'the template has neither controllerTargetRef nor podSpec, so there is no pod to create; set one';
    return { refusal: { code: 'MissingTarget', message, field: 'spec', status: 422 } };
  }
  if (workload) return { podTemplate: workload.podTemplate, workload };
  const message = `${ref.kind} ${ref.name} does not exist in namespace ${request.namespace}; create it or correct the template`;
  return { refusal: { code: 'TargetNotFound', message, field: 'spec.controllerTargetRef', status: 404 } };
}

function mutate({ podTemplate, workload }: Source, input: PodAccessInput, budget: PlanBudget): MutatedTemplate {
  const { templateSpec } = input;
  if (!workload) return mutatePodTemplate(podTemplate, undefined, templateSpec, budget);
  const kept = keepsAccount(input) ? podTemplate : underDefaultAccount(podTemplate, input.pullSecrets);
  const { controllerTargetMutationConfig } = templateSpec;
  return mutatePodTemplate(withoutIdentity(kept, budget), controllerTargetMutationConfig, templateSpec, budget);
}

function podOf(
  { metadata, spec }: PodTemplate,
  labels: Labels,
  { request, templateSpec, durationMs }: PodAccessInput,
): KubeObject {
  const ours = childMetadata(request, podAccessRequests);
  const annotations = { ...stringMap(metadata['annotations']) };
  delete annotations[planHashAnnotation];
  return {
    apiVersion: apiVersionOf(pods),
    kind: pods.kind,
    metadata: {
      ...ours,
      labels,
      annotations,
    },
    spec: podSpecOf(spec, durationMs, templateSpec),
  };
}

/** Sets activeDeadlineSeconds, so that the kubelet stops the pod after the granted time even if the server does not. */
function podSpecOf(spec: JsonObject, durationMs: number, templateSpec: PodAccessTemplateSpec): JsonObject {
  const { nodeName, ephemeralContainers: _, ...kept } = spec;
  const keepsNode = templateSpec.allowPrivilegedPod === true;
  const granted = Math.min(Math.max(1, Math.ceil(durationMs / 1000)), LONGEST_DEADLINE_S);
  const deadline = kept['activeDeadlineSeconds'];
  return {
    ...kept,
    ...(keepsNode && nodeName !== undefined ? { nodeName } : {}),
    automountServiceAccountToken: kept['automountServiceAccountToken'] === true,
    activeDeadlineSeconds: typeof deadline === 'number' && deadline >= 1 ? Math.min(deadline, granted) : granted,
    ...(keepsGrace(templateSpec) ? {} : { terminationGracePeriodSeconds: shortGrace(kept) }),
  };
}

/** Only a pod that is copied from a workload has a grace period to keep. */
const keepsGrace = ({ controllerTargetRef, controllerTargetMutationConfig }: PodAccessTemplateSpec): boolean =>
  controllerTargetRef !== undefined && own(controllerTargetMutationConfig, 'keepTerminationGracePeriod') === true;

/** A grace period of at most 1 s, so that no shell continues when a deadline, an eviction, or a drain stops the pod. */
function shortGrace(spec: JsonObject): number {
  const { terminationGracePeriodSeconds: grace } = spec;
  return typeof grace === 'number' && grace >= 0 ? Math.min(grace, deletionGraceS) : deletionGraceS;
}

/** Mounts without a volume: a StatefulSet's volumeClaimTemplates are not part of its pod template. Checked here to name the remedy. */
function checkMounts(spec: PodTemplate['spec']): Violation | undefined {
  const volumes = new Set(listIn(spec, 'volumes').map((volume) => own(volume, 'name')));
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of listIn(spec, list).entries()) {
      for (const kind of ['volumeMounts', 'volumeDevices']) {
        const mount = listIn(container, kind).find((each) => !volumes.has(own(each, 'name')));
        if (mount === undefined) continue;
        const name = String(own(mount, 'name')).slice(0, 63);
        return {
          code: 'InvalidPodTemplate',
          message:
            `spec.${list}[${index}].${kind} uses the volume ${JSON.stringify(name)}, which the pod template does not have ` +
            '(volumeClaimTemplates are not copied); remove the mount or add a volume with patchSpecOperations',
          field: 'spec.controllerTargetMutationConfig.patchSpecOperations',
          status: 422,
        };
      }
    }
  }
  return undefined;
}

function checkMetadata({ metadata }: PodTemplate): Violation | undefined {
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field];
    if (map === undefined || map === null) continue;
    if (isRecord(map) && Object.values(map).every((value) => typeof value === 'string')) continue;
    const message = `metadata.${field} of the access pod must be a map of strings; correct the template's podLabels, podAnnotations or patch`;
    return { code: 'InvalidPodTemplate', message, field: `metadata.${field}`, status: 422 };
  }
  return undefined;
}

/** Renders the access command now, so that a bad one denies the request instead of failing once the pod runs. */
function checkAccessCommand(accessCommand: string | undefined, pod: KubeObject): Violation | undefined {
  if (accessCommand === undefined) return undefined;
  const { name, namespace = '', labels = {}, annotations = {} } = pod.metadata;
  const rendered = renderAccessMessage(accessCommand, { name, namespace, labels, annotations });
  return 'refusal' in rendered ? rendered.refusal : undefined;
}
