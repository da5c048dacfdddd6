import { summaryConditions } from '../api/access/names.ts';
import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';
import type { Condition } from '../api/object.ts';

/** A condition of a request or a template before `mergeConditions` adds the time and the generation. */
export interface AccessConditionUpdate<Type extends string> extends ConditionUpdate<Condition> {
  type: Type;
}

/** A condition with status True and reason `Success`. */
export const success = <Type extends string>(type: Type, message: string): AccessConditionUpdate<Type> => ({
  type,
  status: 'True',
  reason: 'Success',
  message,
});

/** A condition with status False. */
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

/** Whether every one of `types` has a condition with status True. */
export function allTrue(conditions: readonly Condition[], types: readonly string[]): boolean {
  return types.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'));
}

/** The overall state of an object, for tools that know only the conditions of kstatus. */
export type Summary =
  | { readonly state: 'ready'; readonly message: string }
  /** The object may become ready without an edit. */
  | { readonly state: 'reconciling'; readonly reason: string; readonly message: string }
  /** The object does not become ready until a user acts: for example, edits the template, or creates a new request after a denial. */
  | { readonly state: 'stalled'; readonly reason: string; readonly message: string };

const summaryTypes: ReadonlySet<string> = new Set(Object.values(summaryConditions));

/** Whether the condition is Ready, Reconciling, or Stalled. */
export const isSummary = ({ type }: Pick<Condition, 'type'>): boolean => summaryTypes.has(type);

/**
 * Adds or replaces the conditions that kstatus, and so Argo CD and Flux, reads. Ready is always present; Reconciling and Stalled are
 * present only while they are True. `nowMs` is epoch ms.
 */
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
  const { message } = summary;
  if (summary.state === 'ready') return [{ type: summaryConditions.ready, status: 'True', reason: 'Success', message }];
  const { reason } = summary;
  const abnormal = summary.state === 'stalled' ? summaryConditions.stalled : summaryConditions.reconciling;
  return [
    { type: summaryConditions.ready, status: 'False', reason, message },
    { type: abnormal, status: 'True', reason, message },
  ];
}
