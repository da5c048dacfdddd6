import { maxReasons } from '../../api/inventory/reconcile-run.ts';

/** Lanes of the queue, most urgent first. */
export const lanes = {
  /** A user waits: configuration, force, suspension, deletion. */
  manual: 0,
  /** Another component's output, a remote event, the outcome of a run. */
  input: 1,
  /** The interval, retries, new registrations, restarts. */
  time: 2,
} as const;

export type Lane = (typeof lanes)[keyof typeof lanes];

/**
 * Reasons for a run. Records, logs, Events, and requests contain them, with details after a colon:
 * `InputChanged:/status/outputs/network/vnetName`.
 */
export const triggerReasons = {
  created: 'Created',
  configChanged: 'ConfigChanged',
  inputChanged: 'InputChanged',
  /** A missing input of the last run is present. */
  inputArrived: 'InputArrived',
  forced: 'Forced',
  remote: 'Remote',
  registrationChanged: 'RegistrationChanged',
  interval: 'Interval',
  /** The component requested it. */
  requeue: 'Requeue',
  retry: 'Retry',
  leaseOver: 'LeaseOver',
  deleting: 'Deleting',
} as const;

export type TriggerReason = (typeof triggerReasons)[keyof typeof triggerReasons];

export interface Trigger {
  readonly reason: TriggerReason;
  /** The path, or the watched resource. */
  readonly about: string | undefined;
  readonly lane: Lane;
  /** Epoch milliseconds; undefined: at once. */
  readonly atMs: number | undefined;
}

/** Default lane of each reason. */
const laneByReason: Readonly<Record<TriggerReason, Lane>> = {
  Created: lanes.manual,
  ConfigChanged: lanes.manual,
  Forced: lanes.manual,
  Deleting: lanes.manual,
  InputChanged: lanes.input,
  InputArrived: lanes.input,
  Remote: lanes.input,
  RegistrationChanged: lanes.time,
  Interval: lanes.time,
  Requeue: lanes.time,
  Retry: lanes.time,
  LeaseOver: lanes.time,
};

/** Creates a trigger. Defaults: no delay, the lane of its reason, no details. */
export function trigger(reason: TriggerReason, rest: Partial<Omit<Trigger, 'reason'>> = {}): Trigger {
  return { reason, about: undefined, lane: laneByReason[reason], atMs: undefined, ...rest };
}

/** Text form for records, requests, and logs. */
export const reasonText = ({ reason, about }: Trigger): string =>
  (about === undefined ? reason : `${reason}:${about}`).slice(0, maxReasonLength);

const maxReasonLength = 316;

/** Triggers that wait for a run. */
export interface Pending {
  readonly triggers: readonly Trigger[];
  readonly lane: Lane;
  /** Earliest due time of all triggers, monotonic milliseconds. */
  readonly dueAt: number;
}

/** Present time: epoch and monotonic milliseconds. */
interface Now {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Adds a trigger: merges reasons, keeps the most urgent lane and the earliest time. */
function withTrigger(pending: Pending | undefined, trigger: Trigger, now: Now): Pending {
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

/**
 * Merges triggers by reason. If there are more than a record can hold, first drops those that a comparison with the entry would find again.
 */
export function mergeTriggers(before: readonly Trigger[], more: readonly Trigger[]): readonly Trigger[] {
  const merged = [...before];
  for (const trigger of more) {
    if (!merged.some((known) => sameReason(known, trigger))) merged.push(trigger);
  }
  if (merged.length <= maxReasons) return merged;
  const kept = new Set([...new Set([...merged.filter(isNotInEntry), ...merged])].slice(0, maxReasons));
  return merged.filter((trigger) => kept.has(trigger));
}

/** The entry does not show the cause, so a dropped trigger is lost. */
const isNotInEntry = ({ reason }: Trigger): boolean =>
  reason === 'Remote' || reason === 'Forced' || reason === 'Deleting';

const sameReason = (a: Trigger, b: Trigger): boolean => reasonText(a) === reasonText(b);
