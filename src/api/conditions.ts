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

/** Longest message, in characters, that the schemas take. The API server refuses a longer one however often it is sent. */
export const maxConditionMessage = 32_768;

/**
 * The conditions of an object with `findings` in them. A condition that says what it said before stays the same object, and `before`
 * itself is returned when all do: then there is nothing to write. A new type goes to the end. Of several findings about one type the
 * last counts. Conditions that no finding is about stay as they are.
 */
export function mergeConditions<Condition extends AnyCondition>(
  before: readonly Condition[],
  findings: readonly ConditionUpdate<Condition>[],
  nowMs: number,
  { generation, timeOf = 'status' }: MergeOptions = {},
): readonly Condition[] {
  const byType = new Map(before.map((condition) => [condition.type, condition]));
  const lastOfType = new Map(findings.map((finding) => [finding.type, finding]));
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

/** Equal but for the time. */
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
 * The text as the API server gives it back: it replaces halves of surrogate pairs. A message that is sent with them would differ from
 * the stored one at every look.
 */
const storable = (message: string): string => Buffer.from(message.slice(0, maxConditionMessage)).toString();
