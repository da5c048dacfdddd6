import { summaryConditions as summaries } from '../api/access/names.ts';
import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';
import type { Condition } from '../api/object.ts';

export interface Finding<Type extends string> extends ConditionUpdate<Condition> {
  type: Type;
}

export const success = <Type extends string>(type: Type, message: string): Finding<Type> => ({
  type,
  status: 'True',
  reason: 'Success',
  message,
});

export const failure = <Type extends string>(type: Type, reason: string, message: string): Finding<Type> => ({
  type,
  status: 'False',
  reason,
  message,
});

/** True when every one of `types` is True. */
export function allTrue(conditions: readonly Condition[], types: readonly string[]): boolean {
  return types.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'));
}

/** The overall state of an object, for tools that do not know its kind. */
export type Summary =
  | { readonly is: 'ready'; readonly message: string }
  /** The object waits for something that happens without an edit. */
  | { readonly is: 'reconciling'; readonly reason: string; readonly message: string }
  /** The object does not become ready until someone changes it. */
  | { readonly is: 'stalled'; readonly reason: string; readonly message: string };

const ofSummaries: ReadonlySet<string> = new Set(Object.values(summaries));

export const isSummary = ({ type }: Pick<Condition, 'type'>): boolean => ofSummaries.has(type);

/**
 * Adds to `conditions` the conditions that kstatus reads, and through it kubectl wait, Argo CD, and Flux. Ready is always present;
 * Reconciling and Stalled, which are abnormal, are present only while they are True.
 */
export function summarized(
  generation: number,
  conditions: readonly Condition[],
  standing: Summary,
  nowMs: number,
): readonly Condition[] {
  const findings = findingsOf(standing);
  const others = conditions.filter((one) => !isSummary(one));
  const kept = conditions.filter((one) => isSummary(one) && findings.some(({ type }) => type === one.type));
  return mergeConditions([...others, ...kept], findings, nowMs, { generation });
}

function findingsOf(standing: Summary): Finding<string>[] {
  const { message } = standing;
  if (standing.is === 'ready') return [{ type: summaries.ready, status: 'True', reason: 'Success', message }];
  const { reason } = standing;
  const abnormal = standing.is === 'stalled' ? summaries.stalled : summaries.reconciling;
  return [
    { type: summaries.ready, status: 'False', reason, message },
    { type: abnormal, status: 'True', reason, message },
  ];
}
