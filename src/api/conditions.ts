import { formatTime } from '../kit/clock.ts';

/** The common fields of metav1.Condition and the condition type of kube-bind. */
interface AnyCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastTransitionTime: string;
  severity?: string;
  reason?: string;
  message?: string;
  observedGeneration?: number;
}

/** A condition as a reconciler found it; `mergeConditions` adds the time. */
export type ConditionUpdate<Condition extends AnyCondition> = Omit<
  Condition,
  'lastTransitionTime' | 'observedGeneration'
>;

export interface MergeOptions {
  /** The metadata.generation that the findings are about; becomes observedGeneration. Default: none is written. */
  readonly generation?: number | undefined;
  /** What sets lastTransitionTime: `status`, as metav1.Condition has it, or any change, as kube-bind has it. Default `status`. */
  readonly timeOf?: 'status' | 'any change';
}

/** Longest message, in characters, that the schemas take. The API server rejects a longer one. */
export const maxConditionMessage = 32_768;

/**
 * Merges `findings` into the conditions of an object. An unchanged condition stays the same object; if all are unchanged, the result is
 * `before` itself, and there is nothing to write. New types are appended. If several findings have the same type, the last one counts.
 * Conditions without a finding stay unchanged.
 */
export function mergeConditions<Condition extends AnyCondition>(
  before: readonly Condition[],
  updates: readonly ConditionUpdate<Condition>[],
  nowMs: number,
  { generation, timeOf = 'status' }: MergeOptions = {},
): readonly Condition[] {
  const byType = new Map(before.map((condition) => [condition.type, condition]));
  const lastOfType = new Map(updates.map((finding) => [finding.type, finding]));
  let isChanged = false;
  for (const finding of lastOfType.values()) {
    const old = byType.get(finding.type);
    const next = {
      ...finding,
      ...(finding.message === undefined ? {} : { message: storable(finding.message) }),
      lastTransitionTime: formatTime(nowMs),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    } as Condition;
    if (old && sameExceptTime(old, next)) continue;
    if (old?.status === next.status && timeOf === 'status') next.lastTransitionTime = old.lastTransitionTime;
    byType.set(next.type, next);
    isChanged = true;
  }
  return isChanged ? [...byType.values()] : before;
}

/** Whether two lists say the same: times and order do not matter. */
export function sameConditions(a: readonly AnyCondition[], b: readonly AnyCondition[]): boolean {
  if (a.length !== b.length) return false;
  const byType = new Map(a.map((condition) => [condition.type, condition]));
  return b.every((condition) => {
    const other = byType.get(condition.type);
    return other !== undefined && sameExceptTime(other, condition);
  });
}

/** Whether two conditions are equal except for lastTransitionTime. */
function sameExceptTime(a: Omit<AnyCondition, 'lastTransitionTime'>, b: typeof a): boolean {
  return (
    a.status === b.status &&
    a.severity === b.severity &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  );
}

/**
 * The text as the API server returns it, with lone surrogates replaced. Otherwise such a message would differ from the stored one at every
 * reconcile.
 */
const storable = (message: string): string => Buffer.from(message.slice(0, maxConditionMessage)).toString();
