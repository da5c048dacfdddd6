import { formatTime } from '../kit/clock.ts';

/** Only kube-bind's conditions have `severity`; only metav1's have `observedGeneration`. */
interface AnyCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastTransitionTime: string;
  severity?: string;
  reason?: string;
  message?: string;
  observedGeneration?: number;
}

/** `mergeConditions` adds the two omitted fields. */
export type ConditionUpdate<Condition extends AnyCondition> = Omit<
  Condition,
  'lastTransitionTime' | 'observedGeneration'
>;

export interface MergeOptions {
  /** The metadata.generation of the observed object; becomes observedGeneration. */
  readonly generation?: number | undefined;
  /** Default `statusChange`, as in metav1. `anyChange`, also of other fields, is kube-bind's. */
  readonly transitionOn?: 'statusChange' | 'anyChange';
}

/** Characters. The schemas reject a longer message. */
export const maxConditionMessage = 32_768;

/**
 * Returns `before` itself if nothing changes, so that there is nothing to write. Appends new types,
 * and keeps others. `nowMs`: epoch ms. Truncates messages to 32,768 characters.
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

/** Except for order and lastTransitionTime. */
export function sameConditions(a: readonly AnyCondition[], b: readonly AnyCondition[]): boolean {
  if (a.length !== b.length) return false;
  const byType = new Map(a.map((condition) => [condition.type, condition]));
  return b.every((condition) => {
    const other = byType.get(condition.type);
    return other !== undefined && sameExceptTime(other, condition);
  });
}

/** Except for lastTransitionTime. */
function sameExceptTime(a: Omit<AnyCondition, 'lastTransitionTime'>, b: typeof a): boolean {
  return (
    a.status === b.status &&
    a.severity === b.severity &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  );
}

/** Lone surrogates as the API server stores them: otherwise the message would always differ. */
const storable = (message: string): string => Buffer.from(message.slice(0, maxConditionMessage)).toString();
