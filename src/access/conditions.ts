import { summaryConditions } from '../api/access/names.ts';
import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';
import type { Condition } from '../api/object.ts';

/** Before `mergeConditions` adds the time and the generation. */
export interface AccessConditionUpdate<Type extends string> extends ConditionUpdate<Condition> {
  type: Type;
}

export const success = <Type extends string>(type: Type, message: string): AccessConditionUpdate<Type> => ({
  type,
  status: 'True',
  reason: 'Success',
  message,
});

export const failure = <Type extends string>(
  type: Type,
  reason: string,
  message: string,
): AccessConditionUpdate<Type> => ({
  type,
  status: 'False',
  reason,
  message,
});

export function allTrue(conditions: readonly Condition[], types: readonly string[]): boolean {
  return types.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'));
}

/** For tools that know only the conditions of kstatus. */
export type Summary =
  | { readonly state: 'ready'; readonly reason: string; readonly message: string }
  /** May become ready without an edit. */
  | { readonly state: 'reconciling'; readonly reason: string; readonly message: string }
  /** Until a user acts: edits the template, or creates a new request after a denial. */
  | { readonly state: 'stalled'; readonly reason: string; readonly message: string };

const summaryTypes: ReadonlySet<string> = new Set(Object.values(summaryConditions));

export const isSummary = ({ type }: Pick<Condition, 'type'>): boolean => summaryTypes.has(type);

/** For kstatus, Argo CD, and Flux. Reconciling and Stalled are there only while True. Epoch ms. */
export function summarized(
  generation: number,
  conditions: readonly Condition[],
  summary: Summary,
  nowMs: number,
): readonly Condition[] {
  const updates = summaryUpdates(summary);
  const others = conditions.filter((condition) => !isSummary(condition));
  const currentSummaries = conditions.filter(
    (condition) => isSummary(condition) && updates.some(({ type }) => type === condition.type),
  );
  return mergeConditions([...others, ...currentSummaries], updates, nowMs, { generation });
}

function summaryUpdates(summary: Summary): AccessConditionUpdate<string>[] {
  const { reason, message } = summary;
  if (summary.state === 'ready') return [{ type: summaryConditions.ready, status: 'True', reason, message }];
  const abnormal = summary.state === 'stalled' ? summaryConditions.stalled : summaryConditions.reconciling;
  return [
    { type: summaryConditions.ready, status: 'False', reason, message },
    { type: abnormal, status: 'True', reason, message },
  ];
}
