import type { Condition } from '../api/object.ts';
import { formatTime } from '../kit/clock.ts';

/** One thing that was found out; becomes a condition when it differs from what the object says already. */
export interface Finding<Type extends string> {
  readonly type: Type;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** What the API takes of a condition's message; what an apiserver or another webhook says may be longer, and would be refused for ever. */
const MAX_MESSAGE = 32_768;

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

interface Conditioned {
  readonly generation: number;
  readonly conditions: readonly Condition[];
}

/**
 * The object's conditions with `findings` in them. A condition that says the same as before is the same object, time included, so
 * that `sameConditions` can tell whether anything is worth writing. lastTransitionTime changes with the status alone.
 */
export function mergeConditions<Type extends string>(
  object: Conditioned,
  findings: readonly Finding<Type>[],
  nowMs: number,
): Condition[] {
  const byType = new Map(object.conditions.map((condition) => [condition.type, condition]));
  for (const { message, ...rest } of findings) {
    const finding = { ...rest, message: message.slice(0, MAX_MESSAGE) };
    const before = byType.get(finding.type);
    if (before && saysTheSame(before, finding, object.generation)) continue;
    const lastTransitionTime = before?.status === finding.status ? before.lastTransitionTime : formatTime(nowMs);
    byType.set(finding.type, { ...finding, lastTransitionTime, observedGeneration: object.generation });
  }
  return [...byType.values()];
}

export function sameConditions(before: readonly Condition[], now: readonly Condition[]): boolean {
  return before.length === now.length && now.every((condition) => before.includes(condition));
}

/** True when every one of `types` is True. */
export function allTrue(conditions: readonly Condition[], types: readonly string[]): boolean {
  return types.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'));
}

function saysTheSame(before: Condition, finding: Finding<string>, generation: number): boolean {
  return (
    before.status === finding.status &&
    before.reason === finding.reason &&
    before.message === finding.message &&
    before.observedGeneration === generation
  );
}
