import type { SelectorReference } from '../../api/access/pod-access.ts';
import { compileSelector } from '../../kit/label-selector.ts';
import type { Violation } from '../policy/policy.ts';
import type { SelectorView } from '../stores/views.ts';

type Labels = Readonly<Record<string, string>>;

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
): Violation | undefined {
  const found = selectors.find(
    (one) =>
      selects(one, labels) &&
      !selects(one, withoutThem) &&
      !allowed.some(({ kind, name }) => kind === one.kind && name === one.name),
  );
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
