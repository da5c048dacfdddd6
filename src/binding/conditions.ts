import type { BindCondition } from '../api/binding/condition.ts';
import { bindConditions } from '../api/binding/names.ts';
import type { BindReason } from '../api/binding/reasons.ts';
import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';

/** The value to set for one condition, without its time. */
export type BindConditionUpdate = ConditionUpdate<BindCondition>;

type Severity = NonNullable<BindCondition['severity']>;

export const conditionTrue = (type: string): BindConditionUpdate => ({ type, status: 'True' });

export const conditionFalse = (
  type: string,
  severity: Severity,
  reason: BindReason,
  message: string,
): BindConditionUpdate => ({
  type,
  status: 'False',
  severity,
  reason,
  message,
});

export const conditionUnknown = (type: string, reason: BindReason, message: string): BindConditionUpdate => ({
  type,
  status: 'Unknown',
  reason,
  message,
});

/**
 * The conditions after `updates`, `Ready` first and the others by type. An unchanged condition keeps its `lastTransitionTime`; any change
 * sets it to `nowMs` (epoch milliseconds). If several updates have one type, the last one counts. Conditions without an update stay.
 */
export function setConditions(
  before: readonly BindCondition[],
  updates: readonly BindConditionUpdate[],
  nowMs: number,
): BindCondition[] {
  return [...mergeConditions(before, updates.map(normalize), nowMs, { transitionOn: 'anyChange' })].sort(readyFirst);
}

/** Like {@link setConditions}, and sets `Ready` to the summary of the other conditions. If there are no others, `Ready` stays. */
export function setConditionsAndReady(
  before: readonly BindCondition[],
  updates: readonly BindConditionUpdate[],
  nowMs: number,
): BindCondition[] {
  const conditions = setConditions(before, updates, nowMs);
  const summary = summaryOf(conditions);
  return summary ? setConditions(conditions, [summary], nowMs) : conditions;
}

/**
 * The value of `Ready`: the condition with the highest precedence, the first by type among equals. From the highest to the lowest, as in
 * kube-bind: False with severity Error, Warning, or Info; True; Unknown; False without a severity. So True outranks Unknown. Undefined
 * if no condition but `Ready` exists.
 */
export function summaryOf(conditions: readonly BindCondition[]): BindConditionUpdate | undefined {
  const others = conditions.filter(({ type }) => type !== bindConditions.ready).sort(readyFirst);
  const first = others.reduce<BindCondition | undefined>(
    (highest, condition) => (highest && rank(highest) <= rank(condition) ? highest : condition),
    undefined,
  );
  return first && normalize({ ...first, type: bindConditions.ready });
}

export function findCondition(conditions: readonly BindCondition[], type: string): BindCondition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/** Removes reason and message from a True condition, and the severity from all but False ones. */
function normalize({ type, status, severity, reason, message }: BindConditionUpdate): BindConditionUpdate {
  if (status === 'True') return { type, status };
  return {
    type,
    status,
    ...(status === 'False' && severity ? { severity } : {}),
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
  };
}

function readyFirst(a: BindCondition, b: BindCondition): number {
  if (a.type === b.type) return 0;
  if (a.type === bindConditions.ready) return -1;
  if (b.type === bindConditions.ready) return 1;
  return a.type < b.type ? -1 : 1;
}

/** 0 is the highest precedence. */
function rank({ status, severity }: BindCondition): number {
  if (status === 'True') return 3;
  if (status === 'Unknown') return 4;
  const ranks: Record<Severity, number> = { Error: 0, Warning: 1, Info: 2 };
  return severity ? ranks[severity] : 5;
}
