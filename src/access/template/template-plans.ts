import { execAccessRequests } from '../../api/access/exec-access.ts';
import type { PodAccessTemplateSpec } from '../../api/access/pod-access.ts';
import { keyOf } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { own, stringMap } from '../../kit/json-value.ts';
import { unlessAborted } from '../../kit/promises.ts';
import { selectorOf } from '../builders/exec-access.ts';
import { applyJsonPatch } from '../builders/json-patch.ts';
import { type AccessPodMode, type BuilderDeps, type Planned, planChildren, targetNotFound } from '../builders/plan.ts';
import { withinBudget } from '../builders/plan-budget.ts';
import { type PodAccessInput, planPodAccess } from '../builders/pod-access.ts';
import { type CommandSubject, renderAccessCommand } from '../policy/access-command.ts';
import { confinedTo, rulesOf } from '../policy/granted-rules.ts';
import { listNames } from '../policy/names.ts';
import type { Violation } from '../policy/policy.ts';
import { sessionOf } from '../policy/session-policy.ts';
import type { notPlanned, PlannedTemplate } from '../policy/template-policy.ts';
import { targetKey } from '../stores/access-views.ts';
import type { PodView, WorkloadView } from '../stores/cluster-views.ts';
import type { GrantObjects } from './grant-dry-runs.ts';

type NamespaceObjects = Pick<PodAccessInput, 'workload' | 'workloads' | 'selectors'>;

/** No violation depends on these, and the API server does not answer with the uid. */
const placeholder = { name: 'template', uid: 'dry-run' };
const placeholderSubjects = [{ kind: 'User', name: 'example' }] as const;

const emptyNamespace: NamespaceObjects = { workload: undefined, workloads: [], selectors: [] };

/**
 * Plans templates as requests are planned, without an API call, to find their violations. Call it
 * after the stores have synced. Returns `notPlanned` if the runner runs no plan.
 */
export class TemplatePlans {
  readonly #deps: TemplatePlansDeps;

  constructor(deps: TemplatePlansDeps) {
    this.#deps = deps;
  }

  /**
   * Of a pod from `podSpec`, as if the namespace were empty. Also of a patch, which is unused, but
   * which its author expects to apply.
   */
  async violationsInEmptyNamespace(
    template: PlannedTemplate,
    signal: AbortSignal,
  ): Promise<readonly Violation[] | typeof notPlanned> {
    const spec = podSpecOf(template);
    if (!spec || spec.controllerTargetRef) return [];
    return this.#run(() => {
      const planned = this.#plan(template, spec, emptyNamespace);
      const found = 'violation' in planned ? [planned.violation, ...(planned.others ?? [])] : [];
      const patch = this.#patchViolation(spec);
      // A patch that is too large to check must not hide the violations of the pod.
      const isKnown = patch && (patch.code !== 'PlanTooLarge' || found.length === 0);
      return isKnown ? [...found, patch] : found;
    }, signal);
  }

  planInNamespace(template: PlannedTemplate, signal: AbortSignal): Promise<TemplatePlan | typeof notPlanned> {
    const { stores } = this.#deps;
    const { namespace } = template;
    return this.#run(() => {
      const ref = template.spec.controllerTargetRef;
      const workload = ref && stores.workload(targetKey(ref, namespace));
      if (ref && !workload) {
        return { violation: targetNotFound(ref, namespace, this.#remedyFor(ref, namespace)) };
      }
      const spec = podSpecOf(template);
      if (!spec) return planExec(template, workload);
      const workloads = stores.workloadsIn(namespace);
      const planned = this.#plan(template, spec, { workload, workloads, selectors: stores.selectorsIn(namespace) });
      if ('violation' in planned) return { violation: planned.violation };
      const { pod, role } = planned.plan;
      return { ...(pod ? { pod } : {}), role };
    }, signal);
  }

  /** One sentence each. */
  selectorNotes(template: PlannedTemplate): readonly string[] {
    const { namespace } = template;
    const existing = this.#deps.stores.selectorsIn(namespace);
    return (podSpecOf(template)?.allowedSelectors ?? []).flatMap(({ kind, name }, index) =>
      existing.some((selector) => selector.kind === kind && selector.name === name)
        ? []
        : [
            `spec.allowedSelectors[${index}] names ${kind} ${quote(name)}, which does not exist in namespace ${namespace}, so the entry allows nothing; create it, correct the name, or remove the entry`,
          ],
    );
  }

  /** Which workload the template can name instead of one that does not exist. */
  #remedyFor(ref: TargetRef, namespace: string): string | undefined {
    const workloads = this.#deps.stores.workloadsIn(namespace);
    const other = workloads.find(({ name }) => name === ref.name);
    if (other) {
      const version = other.apiVersion === ref.apiVersion ? '' : `, and ${other.apiVersion} in apiVersion`;
      return `a ${other.kind} of that name exists: write ${other.kind} in spec.controllerTargetRef.kind${version}`;
    }
    const pod = this.#deps.stores.pods.get(keyOf({ namespace, name: ref.name }));
    if (!pod) {
      const names = workloads
        .filter(({ apiVersion, kind }) => apiVersion === ref.apiVersion && kind === ref.kind)
        .map(({ name }) => name)
        .sort();
      return names.length === 0
        ? undefined
        : `create it, or write an existing name, such as one of ${listNames(names.slice(0, 3))}`;
    }
    const owner = workloads.find((workload) => controls(workload, pod));
    return owner
      ? `a Pod of ${owner.kind} ${owner.name} has that name: write apiVersion ${owner.apiVersion}, kind ${owner.kind}, and name ${owner.name} in spec.controllerTargetRef`
      : 'a Pod has that name: write the name of a Deployment, StatefulSet, DaemonSet, or Rollout';
  }

  async #run<Result>(plan: () => Result, signal: AbortSignal): Promise<Result | typeof notPlanned> {
    // Undefined only after an abort, which rejects first.
    const planned = this.#deps.runner.run(() => (signal.aborted ? undefined : plan()), signal);
    return (await unlessAborted(planned, signal)) as Result;
  }

  #plan({ namespace }: PlannedTemplate, templateSpec: PodAccessTemplateSpec, objects: NamespaceObjects): Planned {
    const { accessPods, clock, work } = this.#deps;
    const request = { namespace, ...placeholder };
    const session = sessionOf(templateSpec.accessConfig);
    const placeholders = { request, subjects: placeholderSubjects, durationMs: 1000, pullSecrets: [] };
    return planPodAccess({ ...placeholders, ...objects, templateSpec, session, accessPods, clock, work });
  }

  #patchViolation({ podSpec, controllerTargetMutationConfig }: PodAccessTemplateSpec): Violation | undefined {
    const { clock, work } = this.#deps;
    const operations = controllerTargetMutationConfig?.patchSpecOperations ?? [];
    const document = { metadata: {}, spec: podSpec };
    return violationIn(withinBudget((budget) => applyJsonPatch(document, operations, budget), clock, work));
  }
}

/** An invalid access command does not close access, but the request's status would lack it. */
function planExec(
  { namespace, spec: { accessConfig } }: PlannedTemplate,
  workload: WorkloadView | undefined,
): TemplatePlan {
  const session = sessionOf(accessConfig);
  const violation =
    (workload && violationIn(selectorOf(workload))) ??
    (workload && !session
      ? violationIn(renderAccessCommand(accessConfig.accessCommand, subjectOf(workload)))
      : undefined);
  if (violation) return { violation };
  const target = { name: placeholder.name };
  const rules = confinedTo(target.name, rulesOf(accessConfig));
  const { role } = planChildren({
    request: { namespace, ...placeholder },
    requestResource: execAccessRequests,
    target,
    subjects: placeholderSubjects,
    rules,
    session,
  });
  return { role };
}

/** Itself, or through the ReplicaSet whose name has the hash of the Pod. */
function controls({ name, uid }: WorkloadView, { controller, labels }: PodView): boolean {
  if (controller?.kind !== 'ReplicaSet') return controller?.uid === uid;
  const hash = labels['pod-template-hash'] ?? labels['rollouts-pod-template-hash'] ?? '';
  return controller.name === `${name}-${hash}`;
}

/** With examples of their values. */
const addedLabels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Deployment: { 'pod-template-hash': '0' },
  Rollout: { 'rollouts-pod-template-hash': '0' },
  DaemonSet: { 'controller-revision-hash': '0', 'pod-template-generation': '1' },
  StatefulSet: {
    'controller-revision-hash': '0',
    'statefulset.kubernetes.io/pod-name': 'example-0',
    'apps.kubernetes.io/pod-index': '0',
  },
};

const titleOf = ({ kind, name }: Pick<WorkloadView, 'kind' | 'name'>) => `the Pod template of ${kind} ${name}` as const;

/** As the access command sees a Pod of the workload, unless webhooks change it. */
const subjectOf = ({ kind, name, namespace, podTemplate: { metadata } }: WorkloadView): CommandSubject => ({
  title: titleOf({ kind, name }),
  metadataFrom: titleOf({ kind, name }),
  name: placeholder.name,
  namespace,
  labels: { ...stringMap(own(metadata, 'labels')), ...addedLabels[kind] },
  annotations: stringMap(own(metadata, 'annotations')),
});

export type TemplatePlan = GrantObjects | { readonly violation: Violation };

/** Returns `notPlanned` if there is no processor time. May drop a plan after an abort. */
export interface PlanRunner {
  run<Result>(plan: () => Result, signal: AbortSignal): Promise<Result | typeof notPlanned>;
}

interface TemplatePlansDeps {
  readonly stores: Pick<BuilderDeps['stores'], 'workload' | 'workloadsIn' | 'selectorsIn'> & {
    readonly pods: Pick<BuilderDeps['stores']['pods'], 'get'>;
  };
  readonly runner: PlanRunner;
  readonly clock: Clock;
  readonly accessPods: AccessPodMode;
  /** In the units of `PlanBudget`. Default: the limit of a request. */
  readonly work?: number;
}

type TargetRef = NonNullable<PlannedTemplate['spec']['controllerTargetRef']>;

/** The grants of the other kind create no pod. */
const podSpecOf = ({ kind, spec }: PlannedTemplate): PodAccessTemplateSpec | undefined =>
  kind === 'PodAccessTemplate' ? spec : undefined;

const violationIn = (result: object): Violation | undefined =>
  'violation' in result ? (result.violation as Violation) : undefined;
