import { maxReasons } from '../../api/inventory/reconcile-run.ts';
import { reasonText, type Trigger } from './lanes.ts';
import type { Pending } from './step.ts';

/** What time it is: epoch and monotonic milliseconds. */
export interface Now {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** One more of them: reasons are merged, the most urgent lane and the earliest time count. */
export function withTrigger(pending: Pending | undefined, trigger: Trigger, now: Now): Pending {
  const delayMs = Math.max(0, (trigger.atMs ?? now.nowMs) - now.nowMs);
  const dueAt = now.monotonicMs + delayMs;
  if (!pending) return { triggers: [trigger], lane: trigger.lane, dueAt };
  return {
    triggers: mergeTriggers(pending.triggers, [trigger]),
    lane: pending.lane < trigger.lane ? pending.lane : trigger.lane,
    dueAt: Math.min(dueAt, pending.dueAt),
  };
}

export const withTriggers = (pending: Pending | undefined, triggers: readonly Trigger[], now: Now) =>
  triggers.reduce<Pending | undefined>((merged, trigger) => withTrigger(merged, trigger, now), pending);

/** Each reason once; of more than a record keeps, those go first that a look at the entry would find again. */
export function mergeTriggers(before: readonly Trigger[], more: readonly Trigger[]): readonly Trigger[] {
  const merged = [...before];
  for (const trigger of more) {
    if (!merged.some((known) => sameReason(known, trigger))) merged.push(trigger);
  }
  if (merged.length <= maxReasons) return merged;
  const kept = new Set([...new Set([...merged.filter(isOnlyTold), ...merged])].slice(0, maxReasons));
  return merged.filter((trigger) => kept.has(trigger));
}

/** Nothing in the entry shows it: what is forgotten of it is lost. */
const isOnlyTold = ({ reason }: Trigger): boolean =>
  reason === 'Remote' || reason === 'Forced' || reason === 'Deleting';

const sameReason = (a: Trigger, b: Trigger): boolean => reasonText(a) === reasonText(b);
