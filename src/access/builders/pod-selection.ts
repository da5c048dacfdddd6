import type { SelectorReference } from '../../api/access/pod-access.ts';
import { listIn } from '../../kit/json-value.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Violation } from '../policy/policy.ts';
import type { SelectorView, WorkloadView } from '../stores/cluster-views.ts';
import { PlanBudget } from './plan-budget.ts';

export type Labels = Readonly<Record<string, string>>;

/** Matching spends the budget. */
interface CompiledSelector {
  readonly kind: string;
  readonly name: string;
  /** A NetworkPolicy that restricts the egress of the pods that it selects. */
  readonly isolatesEgress: boolean;
  readonly keys: readonly string[];
  selects(labels: Labels): boolean;
}

/** Of compiling one term of a selector, in the unit of PlanBudget. */
const workPerTerm = 128;
/** Of matching one term against labels. */
const workPerMatch = 16;

type Workload = Pick<WorkloadView, 'kind' | 'name' | 'selector'>;

function compile(object: Workload & { readonly isolatesEgress?: boolean }, budget: PlanBudget): CompiledSelector {
  const { kind, name, selector, isolatesEgress = false } = object;
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  const values = matchExpressions.map((expression) => listIn(expression, 'values').length);
  budget.spend(workPerTerm * values.reduce((sum, count) => sum + count, 1 + keys.length));
  const compiled = compileSelector(selector);
  // An invalid selector selects nothing. Neither does the empty selector of a Service.
  const matchesNothing = 'error' in compiled || (kind === 'Service' && keys.length === 0);
  const selects = (labels: Labels): boolean => {
    budget.spend(workPerMatch * (1 + keys.length));
    return !matchesNothing && compiled.matches(labels);
  };
  return { kind, name, isolatesEgress, keys, selects };
}

export interface SelectionInput {
  /** What podLabels and the patch set, and `baseLabels`. */
  readonly labels: Labels;
  /** The labels that every access pod has. */
  readonly baseLabels: Labels;
  /** Services, PodDisruptionBudgets, and NetworkPolicies of the namespace. */
  readonly selectors: readonly SelectorView[];
  /** `spec.allowedSelectors`. */
  readonly allowed?: readonly SelectorReference[] | undefined;
  /** The workload whose network confinement the access pod keeps. */
  readonly confinedAs?:
    | {
        readonly kind: string;
        readonly name: string;
        /** Of the workload's pods. */
        readonly labels: Labels;
        /** All of the namespace: their controllers select pods by labels as well. */
        readonly workloads: readonly Workload[];
      }
    | undefined;
}

/**
 * The labels of the access pod, with those of the workload that keep its network confinement.
 * - `PodIsSelected`: something selects the pod, not by `baseLabels` alone, and is not allowed to.
 * - `ConfinementLost`: it would escape the NetworkPolicies that isolate its workload's egress.
 * Throws `PlanTooLarge`, so call it inside `withinBudget`.
 */
export function planPodLabels(
  input: SelectionInput,
  budget: PlanBudget = new PlanBudget(),
): { readonly labels: Labels } | { readonly violation: Violation } {
  const { baseLabels, allowed = [], confinedAs } = input;
  const selectors = input.selectors.map((view) => compile(view, budget));
  const confinesWorkload = (selector: CompiledSelector): boolean =>
    confinedAs !== undefined && selector.kind === 'NetworkPolicy' && selector.selects(confinedAs.labels);
  const isAllowed = (selector: CompiledSelector): boolean =>
    allowed.some(({ kind, name }) => kind === selector.kind && name === selector.name);
  const mustNotSelect = selectors.filter((selector) => !isAllowed(selector) && !confinesWorkload(selector));
  const selecting = mustNotSelect.find((selector) => selector.selects(input.labels) && !selector.selects(baseLabels));
  if (selecting) return { violation: podIsSelected(selecting, input) };
  if (!confinedAs) return { labels: input.labels };
  const others = [...mustNotSelect, ...confinedAs.workloads.map((workload) => compile(workload, budget))];
  return withConfinement(input.labels, confinedAs, selectors.filter(confinesWorkload), others);
}

function podIsSelected({ kind, name, keys }: CompiledSelector, { labels, baseLabels }: SelectionInput): Violation {
  const selected = listLabels(labels, (key) => keys.includes(key) && baseLabels[key] !== labels[key]);
  return {
    code: 'PodIsSelected',
    message:
      `${kind} ${name} selects the access pod by its labels (${selected}), as one of its own pods; ` +
      `change podLabels or patchSpecOperations, or add ${entryOf({ kind, name })} to spec.allowedSelectors`,
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

/**
 * The access pod mounts the workload's Secrets, so it must reach no more. Omits labels by which
 * `others` would select it.
 */
function withConfinement(
  initialLabels: Labels,
  workload: NonNullable<SelectionInput['confinedAs']>,
  policies: readonly CompiledSelector[],
  others: readonly CompiledSelector[],
): { readonly labels: Labels } | { readonly violation: Violation } {
  // Policies that isolate egress come first: if labels conflict, theirs take precedence.
  const ordered = [...policies].sort(
    (a, b) => Number(b.isolatesEgress) - Number(a.isolatesEgress) || (a.name < b.name ? -1 : 1),
  );
  let labels = initialLabels;
  let firstLoss: Violation | undefined;
  for (const policy of ordered) {
    if (policy.selects(labels)) continue;
    const needed = Object.fromEntries(Object.entries(workload.labels).filter(([key]) => policy.keys.includes(key)));
    const current = labels;
    const extended = { ...needed, ...current };
    const conflicting = others.filter((selector) => selector.selects(extended) && !selector.selects(current));
    if (policy.selects(extended) && conflicting.length === 0) labels = extended;
    else firstLoss ??= confinementLost(workload, policy, { needed, current, conflicting });
  }
  // One isolating policy is enough: policies only add allow rules. Without any, `firstLoss` is set.
  const isolating = ordered.filter(({ isolatesEgress }) => isolatesEgress);
  const escapes = isolating.length > 0 && !isolating.some((policy) => policy.selects(labels));
  return escapes && firstLoss ? { violation: firstLoss } : { labels };
}

/** Of names in a message. */
const maxShown = 5;

interface LabelLoss {
  /** The workload's labels that the policy selects by. */
  readonly needed: Labels;
  /** The labels of the access pod without them. */
  readonly current: Labels;
  /** Selectors that would select the access pod with them. */
  readonly conflicting: readonly CompiledSelector[];
}

function confinementLost(
  workload: NonNullable<SelectionInput['confinedAs']>,
  policy: CompiledSelector,
  { needed, current, conflicting }: LabelLoss,
): Violation {
  const isolates = `NetworkPolicy ${policy.name} isolates the egress of the pods of ${workload.kind} ${workload.name}`;
  // With the workload's values, only a label that it lacks can stop the policy from selecting.
  const message = policy.selects({ ...current, ...needed })
    ? `${isolates} by their labels (${listLabels(needed)}), which the access pod does not get: ${remedyFor(conflicting)}`
    : `${isolates}, but does not select the access pod: its labels ` +
      `(${listLabels(current, (key) => policy.keys.includes(key) && !Object.hasOwn(needed, key))}) do not match the policy's podSelector; ` +
      'change or remove them in podLabels or patchSpecOperations';
  return {
    code: 'ConfinementLost',
    message: `${message}, or set the chart value accessPods to oz, which allows access pods to reach what their workload cannot`,
    field: 'spec.controllerTargetMutationConfig.podLabels',
    status: 403,
  };
}

/** Why the access pod does not get the workload's labels, and how it can. */
function remedyFor(conflicting: readonly CompiledSelector[]): string {
  const nameOf = ({ kind, name }: CompiledSelector): string => `${kind} ${name}`;
  if (conflicting.length === 0) return 'podLabels or patchSpecOperations set other values; set these labels there';
  const allowable = conflicting.filter(({ kind }) => !workloadKinds.has(kind));
  const allow = allowable.length === 0 ? '' : `, and add ${list(allowable.map(entryOf))} to spec.allowedSelectors`;
  return `with them, ${list(conflicting.map(nameOf))} would select it; add these labels to podLabels${allow}`;
}

/** For `spec.allowedSelectors`, as YAML in flow style. */
const entryOf = ({ kind, name }: Pick<CompiledSelector, 'kind' | 'name'>): string => `{kind: ${kind}, name: ${name}}`;

const workloadKinds: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Rollout']);

function listLabels(labels: Labels, isListed: (key: string) => boolean = () => true): string {
  const entries = Object.entries(labels).filter(([key]) => isListed(key));
  return list(entries.map(([key, value]) => `${key}=${value}`));
}

function list(names: readonly string[]): string {
  const more = names.length > maxShown ? ` and ${names.length - maxShown} more` : '';
  return `${names.slice(0, maxShown).join(', ')}${more}`;
}
