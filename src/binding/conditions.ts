import type { BindCondition } from '../api/binding/condition.ts';
import { bindConditions } from '../api/binding/names.ts';
import type { BindReason } from '../api/binding/reasons.ts';
import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';

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

/** `Ready` first. Any change of a condition sets its `lastTransitionTime`. */
export function setConditions(
  before: readonly BindCondition[],
  updates: readonly BindConditionUpdate[],
  nowMs: number,
): BindCondition[] {
  return [...mergeConditions(before, updates.map(normalize), nowMs, { transitionOn: 'anyChange' })].sort(readyFirst);
}

/** As {@link setConditions}, with `Ready` as the summary of the others, if there are any. */
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
 * The condition that ranks highest becomes `Ready`. As in kube-bind: False with severity Error,
 * Warning, or Info; True; Unknown; False without severity.
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

/** A True condition has no reason or message; only a False one has a severity. */
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
