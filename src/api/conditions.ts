import { formatTime } from '../kit/clock.ts';

/** The fields of metav1.Condition and of kube-bind's condition. Only kube-bind has `severity`; only metav1 has `observedGeneration`. */
interface AnyCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastTransitionTime: string;
  severity?: string;
  reason?: string;
  message?: string;
  observedGeneration?: number;
}

/** The condition that a reconciler computed. `mergeConditions` adds `lastTransitionTime` and `observedGeneration`. */
export type ConditionUpdate<Condition extends AnyCondition> = Omit<
  Condition,
  'lastTransitionTime' | 'observedGeneration'
>;

/** How to merge conditions into a status. */
export interface MergeOptions {
  /** The metadata.generation of the observed object; becomes observedGeneration. Default: no observedGeneration. */
  readonly generation?: number | undefined;
  /**
   * Which change sets lastTransitionTime. `statusChange`: a change of the status, as in metav1.Condition. `anyChange`: a change of any
   * field, as in kube-bind. Default `statusChange`.
   */
  readonly transitionOn?: 'statusChange' | 'anyChange';
}

/** Maximum length of a message, in characters. The schemas reject a longer one. */
export const maxConditionMessage = 32_768;

/**
 * Merges `updates` into the conditions of an object. If no condition changes, the result is `before` itself, and there is nothing to write.
 * New types are appended. If several updates have the same type, the last one counts. Other conditions stay unchanged. `nowMs` is epoch ms.
 * Truncates messages to 32,768 characters.
 */
export function mergeConditions<Condition extends AnyCondition>(
  before: readonly Condition[],
  updates: readonly ConditionUpdate<Condition>[],
  nowMs: number,
  { generation, transitionOn = 'statusChange' }: MergeOptions = {},
): readonly Condition[] {
  const byType = new Map(before.map((condition) => [condition.type, condition]));
  const lastOfType = new Map(updates.map((update) => [update.type, update]));
  let isChanged = false;
  for (const update of lastOfType.values()) {
    const current = byType.get(update.type);
    const next = {
      ...update,
      ...(update.message === undefined ? {} : { message: storable(update.message) }),
      lastTransitionTime: formatTime(nowMs),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    } as Condition;
    if (current && sameExceptTime(current, next)) continue;
    if (current?.status === next.status && transitionOn === 'statusChange')
      next.lastTransitionTime = current.lastTransitionTime;
    byType.set(next.type, next);
    isChanged = true;
  }
  return isChanged ? [...byType.values()] : before;
}

/** Whether two lists are equal except for order and lastTransitionTime. */
export function sameConditions(a: readonly AnyCondition[], b: readonly AnyCondition[]): boolean {
  if (a.length !== b.length) return false;
  const byType = new Map(a.map((condition) => [condition.type, condition]));
  return b.every((condition) => {
    const other = byType.get(condition.type);
    return other !== undefined && sameExceptTime(other, condition);
  });
}

/** Whether two conditions of the same type are equal except for lastTransitionTime. */
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
 * Truncates the message to what the schemas allow. Replaces lone surrogates as the API server does; otherwise, the message would differ
 * from the stored one at every reconcile.
 */
const storable = (message: string): string => Buffer.from(message.slice(0, maxConditionMessage)).toString();
