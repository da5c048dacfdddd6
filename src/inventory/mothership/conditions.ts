import type { Condition } from '../../api/object.ts';
import { formatTime } from '../../kit/clock.ts';

/** A condition but for its time. */
export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** `before` with what was found; undefined when that stands there already. Conditions of others stay. */
export function withFindings(
  before: readonly Condition[],
  findings: readonly Finding[],
  nowMs: number,
  generation?: number,
): Condition[] | undefined {
  let changed = false;
  const after = [...before];
  for (const { type, status, reason, message } of findings) {
    const index = after.findIndex((condition) => condition.type === type);
    const old = after[index];
    if (
      old?.status === status &&
      old.reason === reason &&
      old.message === message &&
      old.observedGeneration === generation
    ) {
      continue;
    }
    changed = true;
    const next: Condition = {
      type,
      status,
      reason,
      message,
      lastTransitionTime: old?.status === status ? old.lastTransitionTime : formatTime(nowMs),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    };
    if (index < 0) after.push(next);
    else after[index] = next;
  }
  return changed ? after : undefined;
}
