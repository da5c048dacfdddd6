import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import { planHashAnnotation } from '../../api/access/names.ts';
import { type PodAccessTemplateSpec, podAccessRequests, type SelectorReference } from '../../api/access/pod-access.ts';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { pods } from '../../api/resources.ts';
import { stopGraceS } from '../../grants/applier.ts';
import type { Clock } from '../../kit/clock.ts';
import { isRecord, type JsonObject, listIn, own, stringMap } from '../../kit/json-value.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import { renderAccessMessage } from '../policy/access-client.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import { targetKey } from '../stores/access-views.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import { type Builder, childMetadata, type Planned, planChildren, type RequestIdentity } from './plan.ts';
import { PlanBudget, withinBudget } from './plan-budget.ts';
import { checkPodReach } from './pod-security-baseline.ts';
import { type MutatedTemplate, mutatePodTemplate, type PodTemplate, withoutIdentity } from './pod-template-mutation.ts';

/** activeDeadlineSeconds is an int32. */
const LONGEST_DEADLINE_S = 2 ** 31 - 1;

export interface PodAccessInput {
  readonly request: RequestIdentity;
  readonly templateSpec: PodAccessTemplateSpec;
  /** What `controllerTargetRef` names; not looked at when the template has none. */
  readonly workload: WorkloadView | undefined;
  /** What acts on the pods of the namespace by their labels. */
  readonly selectors: readonly SelectorView[];
  readonly subjects: readonly GrantSubject[];
  /** What the Role was decided to say; default: what the template says now. */
  readonly rules?: readonly GrantedRule[] | undefined;
  /** Granted time in milliseconds. */
  readonly durationMs: number;
  /** Bounds the time that planning takes; absent for what was decided before, of which only the work is bounded. */
  readonly clock?: Pick<Clock, 'monotonic'> | undefined;
}

/** Access to a pod of one's own, made after a workload or written out in the template. */
export const buildPodAccess: Builder<PodAccessTemplateSpec> = (
  request,
  { spec, namespace },
  { subjects, durationMs, pinned },
  { stores, turns, clock },
) =>
  turns.take(() =>
    planPodAccess({
      request,
      templateSpec: spec,
      workload: spec.controllerTargetRef && stores.workload(targetKey(spec.controllerTargetRef, namespace)),
      selectors: stores.selectorsIn(namespace),
      subjects,
      durationMs,
      rules: pinned?.rules,
      clock: pinned ? undefined : clock,
    }),
  );

/** How much more work it is to check a pod, to print it for the plan's hash and to hash it, than to copy it. */
const finishing = 4;

/**
 * Plans a Pod of the requester's own, made after a workload or written out in the template, with the rights to exec into it.
 * With both, the workload wins. Labels come only from the template's podLabels and patch; a ServiceAccount token is
 * mounted only when the template's podSpec or patch asks for one, whatever the workload does. What takes too much work is refused.
 */
export const planPodAccess = (input: PodAccessInput): Planned =>
  withinBudget((budget) => planWithin(budget, input), input.clock);

function planWithin(budget: PlanBudget, input: PodAccessInput): Planned {
  const { request, templateSpec, subjects } = input;
  const source = sourceOf(input);
  if ('refusal' in source) return source;
  const mutated = mutate(source.podTemplate, templateSpec, source.fromWorkload, budget);
  if ('violation' in mutated) return { refusal: mutated.violation };
  const { template } = mutated;
  budget.spend(finishing * mutated.weight);
  const original = source.fromWorkload ? own(source.podTemplate, 'spec') : undefined;
  const mayReach = templateSpec.allowPrivilegedPod === true;
  const refusal =
    (mayReach ? undefined : checkPodReach(template, original)) ?? checkMounts(template.spec) ?? checkMetadata(template);
  if (refusal) return { refusal };
  const pod = podOf(template, input);
  const { labels = {} } = pod.metadata;
  const unusable =
    checkSelection(labels, ownLabels(request), input.selectors, templateSpec.allowedSelectors, budget) ??
    checkAccessCommand(templateSpec.accessConfig.accessCommand, pod);
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

type Source = { readonly podTemplate: unknown; readonly fromWorkload: boolean } | { readonly refusal: Violation };

function sourceOf({ request, templateSpec, workload }: PodAccessInput): Source {
  const ref = templateSpec.controllerTargetRef;
  if (!ref) {
    if (templateSpec.podSpec) return { podTemplate: { spec: templateSpec.podSpec }, fromWorkload: false };
    const message = 'the template has neither controllerTargetRef nor podSpec, so there is no pod to make; set one';
    return { refusal: { code: 'MissingTarget', message, field: 'spec', status: 422 } };
  }
  if (workload) return { podTemplate: workload.podTemplate, fromWorkload: true };
  const message = `${ref.kind} ${ref.name} does not exist in namespace ${request.namespace}; create it or correct the template`;
  return { refusal: { code: 'TargetNotFound', message, field: 'spec.controllerTargetRef', status: 404 } };
}

function mutate(
  podTemplate: unknown,
  templateSpec: PodAccessTemplateSpec,
  fromWorkload: boolean,
  budget: PlanBudget,
): MutatedTemplate {
  if (!fromWorkload) return mutatePodTemplate(podTemplate, undefined, templateSpec, budget);
  const { controllerTargetMutationConfig } = templateSpec;
  return mutatePodTemplate(withoutIdentity(podTemplate, budget), controllerTargetMutationConfig, templateSpec, budget);
}

const ownLabels = (request: RequestIdentity): Readonly<Record<string, string>> =>
  childMetadata(request, podAccessRequests).labels ?? {};

function podOf({ metadata, spec }: PodTemplate, { request, templateSpec, durationMs }: PodAccessInput): KubeObject {
  const ours = childMetadata(request, podAccessRequests);
  const annotations = { ...stringMap(metadata['annotations']) };
  delete annotations[planHashAnnotation];
  return {
    apiVersion: apiVersionOf(pods),
    kind: pods.kind,
    metadata: {
      ...ours,
      labels: { ...stringMap(metadata['labels']), ...ours.labels },
      annotations,
    },
    spec: podSpecOf(spec, durationMs, templateSpec),
  };
}

/** Ends by itself when we do not: the kubelet stops the pod once it has run for the granted time. */
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

/** Only what is made after a workload has a grace period to keep. */
const keepsGrace = ({ controllerTargetRef, controllerTargetMutationConfig }: PodAccessTemplateSpec): boolean =>
  controllerTargetRef !== undefined && own(controllerTargetMutationConfig, 'keepTerminationGracePeriod') === true;

/** For whatever stops the pod without a word on its grace, so that no shell goes on: a deadline, an eviction, a drain. */
function shortGrace(spec: JsonObject): number {
  const { terminationGracePeriodSeconds: grace } = spec;
  return typeof grace === 'number' && grace >= 0 ? Math.min(grace, stopGraceS) : stopGraceS;
}

/** A StatefulSet's volumeClaimTemplates are no part of its pod template; said here, where the author can be told what to do. */
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

/** A command that cannot be told is found now, not when the pod is running already. */
function checkAccessCommand(accessCommand: string | undefined, pod: KubeObject): Violation | undefined {
  if (accessCommand === undefined) return undefined;
  const { name, namespace = '', labels = {}, annotations = {} } = pod.metadata;
  const rendered = renderAccessMessage(accessCommand, { name, namespace, labels, annotations });
  return 'refusal' in rendered ? rendered.refusal : undefined;
}

type Labels = Readonly<Record<string, string>>;

/** Work of reading one term of a selector, in the unit of PlanBudget. */
const workPerTerm = 128;

/** How many things there are to read in a selector; at least one. */
function termsOf({ selector: { matchLabels = {}, matchExpressions = [] } = {} }: SelectorView): number {
  const values = matchExpressions.map((expression) => listIn(expression, 'values').length);
  return values.reduce((sum, count) => sum + count, 1 + Object.keys(matchLabels).length + matchExpressions.length);
}

/**
 * Refuses an access pod that a Service would send traffic to, that a PodDisruptionBudget would count, or that a NetworkPolicy would
 * treat as one of its workload's own: whatever its labels put it under, and the template does not list. What selects a pod of no
 * labels too, such as a policy for the whole namespace, is no matter of labels.
 */
export function checkSelection(
  labels: Labels,
  withoutThem: Labels,
  selectors: readonly SelectorView[],
  allowed: readonly SelectorReference[] = [],
  budget: PlanBudget = new PlanBudget(),
): Violation | undefined {
  const found = selectors.find((one) => {
    budget.spend(workPerTerm * termsOf(one));
    return (
      selects(one, labels) &&
      !selects(one, withoutThem) &&
      !allowed.some(({ kind, name }) => kind === one.kind && name === one.name)
    );
  });
  if (!found) return undefined;
  return {
    code: 'PodIsSelected',
    message:
      `${found.kind} ${found.name} selects the access pod by its labels, as if it were a pod of the workload; ` +
      'change podLabels or the patch, or list it in spec.allowedSelectors',
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

function selects({ selector, kind }: SelectorView, labels: Labels): boolean {
  // To a Service an empty selector is none.
  if (kind === 'Service' && Object.keys(selector?.matchLabels ?? {}).length === 0) return false;
  const compiled = compileSelector(selector);
  return 'matches' in compiled && compiled.matches(labels);
}
