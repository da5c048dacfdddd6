import type { SelectorReference } from '../../api/access/pod-access.ts';
import { listIn } from '../../kit/json-value.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Violation } from '../policy/policy.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import { PlanBudget } from './plan-budget.ts';

export type Labels = Readonly<Record<string, string>>;

/** Something of the namespace that acts on pods by their labels. */
interface CompiledSelector {
  readonly kind: string;
  readonly name: string;
  readonly isolatesEgress: boolean;
  /** The label keys that it looks at. */
  readonly keys: readonly string[];
  selects(labels: Labels): boolean;
}

/** Work of reading one term of a selector, and of comparing it with labels, in the unit of PlanBudget. */
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
  // To a Service an empty selector is none.
  const none = 'error' in compiled || (kind === 'Service' && keys.length === 0);
  const selects = (labels: Labels): boolean => {
    budget.spend(workPerMatch * (1 + keys.length));
    return !none && compiled.matches(labels);
  };
  return { kind, name, isolatesEgress, keys, selects };
}

export interface SelectionInput {
  /** Those that the template's podLabels and patch give, and ours. */
  readonly labels: Labels;
  /** Those that every access pod has. */
  readonly ownLabels: Labels;
  /** Services, PodDisruptionBudgets and NetworkPolicies of the namespace. */
  readonly selectors: readonly SelectorView[];
  /** What the template lets select the access pod. */
  readonly allowed?: readonly SelectorReference[] | undefined;
  /** What the access pod is made after, where it keeps what confines that. */
  readonly confinedAs?:
    | {
        readonly kind: string;
        readonly name: string;
        /** Of its pods. */
        readonly labels: Labels;
        /** The workloads of the namespace, whose controllers know their pods by labels. */
        readonly workloads: readonly Workload[];
      }
    | undefined;
}

/**
 * The labels of the access pod, or why it is not made: because a Service would send it traffic, a PodDisruptionBudget would count it, or
 * a NetworkPolicy for other pods would hold for it, by its labels and without the template's leave; or because it would escape a
 * NetworkPolicy. What selects a pod of no labels too, such as a policy for the whole namespace, is no matter of labels.
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
 * Adds the labels of the workload that NetworkPolicies select by: what the workload's pods may not reach, an access pod with their
 * Secrets may not reach either. Those that would put it under one of `others` are left out, and where that takes the isolation of its
 * egress away, there is no pod.
 */
function confined(
  given: Labels,
  workload: NonNullable<SelectionInput['confinedAs']>,
  policies: readonly CompiledSelector[],
  others: readonly CompiledSelector[],
): { readonly labels: Labels } | { readonly refusal: Violation } {
  // What is about egress first: where not all labels can be kept, these matter most.
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
      ? 'podLabels or the patch say otherwise'
      : `${list(conflicting.map(({ kind, name }) => `${kind} ${name}`))} would select it then`;
  const listed = conflicting.filter(({ kind }) => !workloadKinds.has(kind));
  const allow =
    listed.length === 0
      ? ''
      : `, and list ${list(listed.map(({ kind, name }) => `${kind} ${name}`))} in spec.allowedSelectors`;
  return {
    code: 'ConfinementLost',
    message:
      `NetworkPolicy ${policy.name} isolates the egress of the pods of ${workload.kind} ${workload.name} by their labels (${shown}), ` +
      `which the access pod does not get: ${why}; write these labels in podLabels${allow}, ` +
      'or set the chart value accessPods to oz, which lets access pods reach what their workload may not',
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

const workloadKinds: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Rollout']);

function list(names: readonly string[]): string {
  const more = names.length > maxShown ? ` and ${names.length - maxShown} more` : '';
  return `${names.slice(0, maxShown).join(', ')}${more}`;
}
