import type { GrantedRule, GrantSession, GrantSubject } from '../../api/access/grant.ts';
import { planHashAnnotation } from '../../api/access/names.ts';
import { type PodAccessTemplateSpec, podAccessRequests } from '../../api/access/pod-access.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { pods, serviceAccounts } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { isRecord, type JsonObject, listIn, own, stringMap, strings } from '../../kit/json-value.ts';
import { findObject } from '../../kube/client.ts';
import { deletionGraceS } from '../../rbac/applier.ts';
import { renderAccessCommand } from '../policy/access-command.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import { isObjectName } from '../policy/names.ts';
import { isDeadline } from '../policy/pod-deadline.ts';
import type { Violation } from '../policy/policy.ts';
import { sessionOf } from '../policy/session-policy.ts';
import { targetKey } from '../stores/access-views.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import {
  type AccessPodMode,
  type Builder,
  type BuilderDeps,
  childMetadata,
  type Planned,
  planChildren,
  type RequestIdentity,
  targetNotFound,
} from './plan.ts';
import { type PlanBudget, withinBudget } from './plan-budget.ts';
import { podReachViolations, serviceAccountOf } from './pod-security-baseline.ts';
import { type Labels, planPodLabels, type SelectionInput } from './pod-selection.ts';
import {
  type MutatedTemplate,
  mutatePodTemplate,
  type PodTemplate,
  underDefaultAccount,
  withoutIdentity,
} from './pod-template-mutation.ts';

/** activeDeadlineSeconds is an int32. */
const MAX_DEADLINE_S = 2 ** 31 - 1;

export interface PodAccessInput {
  readonly request: RequestIdentity;
  readonly templateSpec: PodAccessTemplateSpec;
  /** Ignored if the template has no `controllerTargetRef`. */
  readonly workload: WorkloadView | undefined;
  /** Of the workload's ServiceAccount, if the access pod needs them. */
  readonly pullSecrets: readonly string[];
  /** With `oz`, the workload's ServiceAccount, and none of its labels. */
  readonly accessPods: AccessPodMode;
  readonly workloads: readonly WorkloadView[];
  /** Services, PodDisruptionBudgets, and NetworkPolicies of the namespace. */
  readonly selectors: readonly SelectorView[];
  readonly subjects: readonly GrantSubject[];
  /** From the stored grant if it is planned again. Default: of every grant and the template. */
  readonly rules?: readonly GrantedRule[] | undefined;
  /** Present if the subjects reach the pod only through the gateway. */
  readonly session?: GrantSession | undefined;
  /** Milliseconds: the granted duration, or `extension.total` if that is longer. */
  readonly durationMs: number;
  /** Bounds the time. Absent for a plan that was granted before. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
  /** In the unit of PlanBudget. Default: that for one grant. */
  readonly work?: number | undefined;
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
      durationMs: request.spec.emergency ? durationMs : Math.max(durationMs, longestExtendedMs(spec)),
      rules: pinned?.rules,
      session: pinned ? pinned.session : sessionOf(spec.accessConfig, request.spec.emergency),
      clock: pinned ? undefined : clock,
    }),
  );
};

/** Cost of checking, serializing, and hashing a pod, relative to copying it. */
const finishingFactor = 4;

/** The workload's pull secrets, if the access pod lacks its ServiceAccount and names none. */
async function pullSecretsOf(
  workload: WorkloadView | undefined,
  { controllerTargetMutationConfig }: PodAccessTemplateSpec,
  { client, accessPods }: Pick<BuilderDeps, 'client' | 'accessPods'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const spec = own(workload?.podTemplate, 'spec');
  const name = serviceAccountOf(spec);
  const keepsAccount = accessPods === 'oz' || keepsServiceAccount(controllerTargetMutationConfig);
  const needsNone = keepsAccount || name === 'default' || listIn(spec, 'imagePullSecrets').length > 0;
  if (!workload || needsNone || !isObjectName(name)) return [];
  const { namespace } = workload;
  const account = await findObject(client, serviceAccounts, { namespace, name }, { signal });
  return strings(listIn(account, 'imagePullSecrets').map((secret) => own(secret, 'name')));
}

const keepsServiceAccount = (config: PodAccessTemplateSpec['controllerTargetMutationConfig']): boolean =>
  own(config, 'keepServiceAccount') === true;

/**
 * Plans a Pod with its Role and RoleBinding, from the workload or podSpec. It runs as the
 * ServiceAccount `default`, unless the template keeps the workload's, `accessPods` is `oz`, or a
 * privileged template chooses one. See `planPodLabels` for its labels. Code `PlanTooLarge`.
 */
export const planPodAccess = (input: PodAccessInput): Planned =>
  withinBudget((budget) => planWithin(budget, input), input.clock, input.work);

function planWithin(budget: PlanBudget, input: PodAccessInput): Planned {
  const { request, templateSpec, subjects } = input;
  const source = sourceOf(input);
  if ('violation' in source) return source;
  const mutated = mutate(source, input, budget);
  if ('violation' in mutated) return mutated;
  const { template } = mutated;
  budget.spend(finishingFactor * mutated.weight);
  const workloadPodSpec = source.workload && own(source.podTemplate, 'spec');
  const mayBePrivileged = templateSpec.allowPrivilegedPod === true;
  const account = runsUnderWorkloadAccount(input) ? serviceAccountOf(workloadPodSpec) : 'default';
  const [violation, ...others] = [
    ...(mayBePrivileged ? [] : podReachViolations(template, workloadPodSpec, account)),
    ...mountViolations(template.spec, source),
    ...metadataViolations(template),
  ];
  const baseLabels = childMetadata(request, podAccessRequests).labels ?? {};
  const labels = { ...stringMap(template.metadata['labels']), ...baseLabels };
  if (violation) {
    const command = checkAccessCommand(templateSpec, podOf(template, labels, input));
    return { violation, others: command ? [...others, command] : others };
  }
  const selected = planPodLabels(
    {
      labels,
      baseLabels,
      selectors: input.selectors,
      allowed: templateSpec.allowedSelectors,
      confinedAs: confinedAs(source, input),
    },
    budget,
  );
  if ('violation' in selected) return selected;
  const pod = podOf(template, selected.labels, input);
  const commandViolation = checkAccessCommand(templateSpec, pod);
  if (commandViolation) return { violation: commandViolation };
  const target = { name: pod.metadata.name };
  return {
    plan: planChildren({
      request,
      requestResource: podAccessRequests,
      target,
      subjects,
      rules: input.rules ?? confinedTo(target.name, rulesOf(templateSpec.accessConfig)),
      session: input.session,
      pod,
      limits: mutated.lowered,
    }),
  };
}

interface PodSource {
  readonly podTemplate: unknown;
  /** Absent for a pod from podSpec. */
  readonly workload?: WorkloadView;
}

const runsUnderWorkloadAccount = ({ accessPods, templateSpec }: PodAccessInput): boolean =>
  accessPods === 'oz' || keepsServiceAccount(templateSpec.controllerTargetMutationConfig);

/** Whose NetworkPolicies must also confine the access pod; none for podSpec, and with `oz`. */
function confinedAs({ podTemplate, workload }: PodSource, input: PodAccessInput): SelectionInput['confinedAs'] {
  if (!workload || input.accessPods === 'oz') return undefined;
  const { kind, name } = workload;
  const labels = stringMap(own(own(podTemplate, 'metadata'), 'labels'));
  return { kind, name, labels, workloads: input.workloads };
}

function sourceOf({ request, templateSpec, workload }: PodAccessInput): PodSource | { readonly violation: Violation } {
  const ref = templateSpec.controllerTargetRef;
  if (!ref) {
    if (templateSpec.podSpec) return { podTemplate: { spec: templateSpec.podSpec } };
    const message = 'the template has neither controllerTargetRef nor podSpec, so there is no pod to create; set one';
    return { violation: { code: 'InvalidTemplate', message, field: 'spec', status: 422 } };
  }
  if (workload) return { podTemplate: workload.podTemplate, workload };
  return { violation: targetNotFound(ref, request.namespace) };
}

function mutate({ podTemplate, workload }: PodSource, input: PodAccessInput, budget: PlanBudget): MutatedTemplate {
  const { templateSpec } = input;
  if (!workload) return mutatePodTemplate(podTemplate, undefined, templateSpec, budget);
  const source = runsUnderWorkloadAccount(input) ? podTemplate : underDefaultAccount(podTemplate, input.pullSecrets);
  const { controllerTargetMutationConfig } = templateSpec;
  return mutatePodTemplate(withoutIdentity(source, budget), controllerTargetMutationConfig, templateSpec, budget);
}

function podOf(
  { metadata, spec }: PodTemplate,
  labels: Labels,
  { request, templateSpec, durationMs }: PodAccessInput,
): KubeObject {
  const baseMetadata = childMetadata(request, podAccessRequests);
  const annotations = { ...stringMap(metadata['annotations']) };
  delete annotations[planHashAnnotation];
  return {
    apiVersion: apiVersionOf(pods),
    kind: pods.kind,
    metadata: {
      ...baseMetadata,
      labels,
      annotations,
    },
    spec: podSpecOf(spec, durationMs, templateSpec),
  };
}

/**
 * The deadline stops the pod even if the server is down. It includes extensions: no client can
 * raise it.
 */
function podSpecOf(spec: JsonObject, durationMs: number, templateSpec: PodAccessTemplateSpec): JsonObject {
  const { nodeName, ephemeralContainers: _, ...rest } = spec;
  const keepsNode = templateSpec.allowPrivilegedPod === true;
  const grantedS = Math.min(Math.max(1, Math.ceil(durationMs / 1000)), MAX_DEADLINE_S);
  const deadlineS = rest['activeDeadlineSeconds'];
  return {
    ...rest,
    ...(keepsNode && nodeName !== undefined ? { nodeName } : {}),
    automountServiceAccountToken: rest['automountServiceAccountToken'] === true,
    activeDeadlineSeconds: isDeadline(deadlineS) ? Math.min(deadlineS, grantedS) : grantedS,
    ...(keepsGrace(templateSpec) ? {} : { terminationGracePeriodSeconds: shortGrace(rest) }),
  };
}

/** Milliseconds; 0 if the template allows no extension. */
function longestExtendedMs({ accessConfig: { extension } }: PodAccessTemplateSpec): number {
  const total = extension && parseGoDuration(extension.total);
  return total && 'ns' in total ? toMilliseconds(total.ns) : 0;
}

/** Never for a pod from podSpec. */
const keepsGrace = ({ controllerTargetRef, controllerTargetMutationConfig }: PodAccessTemplateSpec): boolean =>
  controllerTargetRef !== undefined && own(controllerTargetMutationConfig, 'keepTerminationGracePeriod') === true;

/** At most 1 s, so that no shell outlives a deadline, an eviction, or a drain for longer. */
function shortGrace(spec: JsonObject): number {
  const { terminationGracePeriodSeconds: grace } = spec;
  return typeof grace === 'number' && grace >= 0 ? Math.min(grace, deletionGraceS) : deletionGraceS;
}

/** Mounts without a volume: the pod template of a StatefulSet lacks its volumeClaimTemplates. */
function* mountViolations(spec: PodTemplate['spec'], { workload }: PodSource): Generator<Violation> {
  const volumes = new Set(listIn(spec, 'volumes').map((volume) => own(volume, 'name')));
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of listIn(spec, list).entries()) {
      for (const kind of ['volumeMounts', 'volumeDevices']) {
        for (const mount of listIn(container, kind)) {
          if (volumes.has(own(mount, 'name'))) continue;
          const name = String(own(mount, 'name')).slice(0, 63);
          const why = `${kind} uses the volume ${JSON.stringify(name)}`;
          const used = `spec.${list}[${index}].${why}`;
          const [message, field] = workload
            ? [
                `${used}, which the pod template does not have (volumeClaimTemplates are not copied); ` +
                  'remove the mount or add a volume with patchSpecOperations',
                'spec.controllerTargetMutationConfig.patchSpecOperations',
              ]
            : [
                `${used}, which spec.podSpec.volumes does not have; add it there, or remove the mount`,
                'spec.podSpec.volumes',
              ];
          yield { code: 'InvalidTemplate', message, field, status: 422, key: `${list}: ${why}` };
        }
      }
    }
  }
}

function* metadataViolations({ metadata }: PodTemplate): Generator<Violation> {
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field];
    if (map === undefined || map === null) continue;
    if (isRecord(map) && Object.values(map).every((value) => typeof value === 'string')) continue;
    const message = `metadata.${field} of the access pod must be a map of strings; correct the template's podLabels, podAnnotations, or patch`;
    yield { code: 'InvalidTemplate', message, field: `metadata.${field}`, status: 422 };
  }
}

/** An invalid command denies the request before the server creates the pod. */
function checkAccessCommand(templateSpec: PodAccessTemplateSpec, pod: KubeObject): Violation | undefined {
  const { accessConfig, controllerTargetRef } = templateSpec;
  if (accessConfig.accessCommand === undefined) return undefined;
  const { name, namespace = '', labels = {}, annotations = {} } = pod.metadata;
  const rendered = renderAccessCommand(accessConfig.accessCommand, {
    title: 'the access pod',
    metadataFrom: controllerTargetRef && 'mutationConfig',
    name,
    namespace,
    labels,
    annotations,
  });
  return 'violation' in rendered ? rendered.violation : undefined;
}
