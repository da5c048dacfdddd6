import type { SelectorReference } from '../../api/access/pod-access.ts';
import { listIn } from '../../kit/json-value.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Violation } from '../policy/policy.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import { PlanBudget } from './plan-budget.ts';

export type Labels = Readonly<Record<string, string>>;

/** An object of the namespace that selects pods by labels. */
interface CompiledSelector {
  readonly kind: string;
  readonly name: string;
  readonly isolatesEgress: boolean;
  /** The label keys of its selector. */
  readonly keys: readonly string[];
  selects(labels: Labels): boolean;
}

/** Work of compiling one term of a selector, and of matching it against labels, in the unit of PlanBudget. */
const workPerTerm = 128;
const workPerMatch = 16;

type Workload = Pick<WorkloadView, 'kind' | 'name' | 'selector'>;

function compile(one: Workload & { readonly isolatesEgress?: boolean }, budget: PlanBudget): CompiledSelector {
  const { kind, name, selector, isolatesEgress = false } = one;
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  const values = matchExpressions.map((expression) => listIn(expression, 'values').length);
  budget.spend(workPerTerm * values.reduce((sum, count) => sum + count, 1 + keys.length));
  const compiled = compileSelector(selector);
  // A Service with an empty selector selects nothing.
  const none = 'error' in compiled || (kind === 'Service' && keys.length === 0);
  const selects = (labels: Labels): boolean => {
    budget.spend(workPerMatch * (1 + keys.length));
    return !none && compiled.matches(labels);
  };
  return { kind, name, isolatesEgress, keys, selects };
}

export interface SelectionInput {
  /** The labels of the template's podLabels and patch, and ours. */
  readonly labels: Labels;
  /** The labels of every access pod. */
  readonly ownLabels: Labels;
  /** Services, PodDisruptionBudgets, and NetworkPolicies of the namespace. */
  readonly selectors: readonly SelectorView[];
  /** `spec.allowedSelectors`: objects that may select the access pod. */
  readonly allowed?: readonly SelectorReference[] | undefined;
  /** The workload whose confinement the access pod keeps; absent if it keeps none. */
  readonly confinedAs?:
    | {
        readonly kind: string;
        readonly name: string;
        /** Labels of its pods. */
        readonly labels: Labels;
        /** All workloads of the namespace: their controllers select pods by labels, too. */
        readonly workloads: readonly Workload[];
      }
    | undefined;
}

/**
 * The labels of the access pod, or the reason to refuse it. `PodIsSelected`: a Service, a PodDisruptionBudget, or a foreign NetworkPolicy
 * would select it by its labels, and the template does not allow that. `ConfinementLost`: it would escape the NetworkPolicies that isolate
 * the egress of its workload. An object that also selects pods without labels, such as a policy for the whole namespace, does not count.
 */
export function labelsOf(
  input: SelectionInput,
  budget: PlanBudget = new PlanBudget(),
): { readonly labels: Labels } | { readonly refusal: Violation } {
  const { ownLabels, allowed = [], confinedAs } = input;
  const selectors = input.selectors.map((view) => compile(view, budget));
  const confines = (one: CompiledSelector): boolean =>
    confinedAs !== undefined && one.kind === 'NetworkPolicy' && one.selects(confinedAs.labels);
  const disallowed = selectors.filter(
    (one) => !allowed.some(({ kind, name }) => kind === one.kind && name === one.name) && !confines(one),
  );
  const found = disallowed.find((one) => one.selects(input.labels) && !one.selects(ownLabels));
  if (found) return { refusal: isSelected(found) };
  if (!confinedAs) return { labels: input.labels };
  const others = [...disallowed, ...confinedAs.workloads.map((workload) => compile(workload, budget))];
  return confined(input.labels, confinedAs, selectors.filter(confines), others);
}

function isSelected({ kind, name }: CompiledSelector): Violation {
  return {
    code: 'PodIsSelected',
    message:
      `${kind} ${name} selects the access pod by its labels, as if it were a pod of the workload; ` +
      'change podLabels or the patch, or list it in spec.allowedSelectors',
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

/**
 * Adds the workload's labels that NetworkPolicies select by: the access pod mounts the same Secrets, so it must not reach more than the
 * workload's pods. It omits labels that would make one of `others` select the access pod. If no policy then isolates its egress, it
 * refuses the pod.
 */
function confined(
  given: Labels,
  workload: NonNullable<SelectionInput['confinedAs']>,
  policies: readonly CompiledSelector[],
  others: readonly CompiledSelector[],
): { readonly labels: Labels } | { readonly refusal: Violation } {
  // Policies that isolate egress come first: if not all labels can be kept, theirs matter most.
  const inOrder = [...policies].sort(
    (a, b) => Number(b.isolatesEgress) - Number(a.isolatesEgress) || (a.name < b.name ? -1 : 1),
  );
  let labels = given;
  let lost: Violation | undefined;
  for (const policy of inOrder) {
    if (policy.selects(labels)) continue;
    const needed = Object.fromEntries(Object.entries(workload.labels).filter(([key]) => policy.keys.includes(key)));
    const extended = { ...needed, ...labels };
    const before = labels;
    const conflicting = others.filter((one) => one.selects(extended) && !one.selects(before));
    if (policy.selects(extended) && conflicting.length === 0) labels = extended;
    else lost ??= confinementLost(workload, policy, needed, conflicting);
  }
  const isolating = inOrder.filter(({ isolatesEgress }) => isolatesEgress);
  const escapes = isolating.length > 0 && !isolating.some((policy) => policy.selects(labels));
  return escapes && lost ? { refusal: lost } : { labels };
}

const maxShown = 5;

function confinementLost(
  workload: { readonly kind: string; readonly name: string },
  policy: CompiledSelector,
  needed: Labels,
  conflicting: readonly CompiledSelector[],
): Violation {
  const labels = Object.entries(needed).map(([key, value]) => `${key}=${value}`);
  const shown = list(labels);
  const why =
    conflicting.length === 0
      ? 'podLabels or the patch set other values'
      : `with them, ${list(conflicting.map(({ kind, name }) => `${kind} ${name}`))} would select it`;
  const listed = conflicting.filter(({ kind }) => !workloadKinds.has(kind));
  const allow =
    listed.length === 0
      ? ''
      : `, and list ${list(listed.map(({ kind, name }) => `${kind} ${name}`))} in spec.allowedSelectors`;
  return {
    code: 'ConfinementLost',
    message:
      `NetworkPolicy ${policy.name} isolates the egress of the pods of ${workload.kind} ${workload.name} by their labels (${shown}), ` +
      `which the access pod does not get: ${why}; add these labels to podLabels${allow}, ` +
      'or set the chart value accessPods to oz, which allows access pods to reach what their workload cannot',
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

const workloadKinds: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Rollout']);

function list(names: readonly string[]): string {
  const more = names.length > maxShown ? ` and ${names.length - maxShown} more` : '';
  return `${names.slice(0, maxShown).join(', ')}${more}`;
}
