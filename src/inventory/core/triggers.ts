import { maxReasons } from '../../api/inventory/reconcile-run.ts';

/** Lanes of the queue, most urgent first. */
export const lanes = {
  /** Somebody waits for it: configuration, force, suspension, deletion. */
  manual: 0,
  /** Another component's output, a remote event, the outcome of a run. */
  input: 1,
  /** The interval, retries, new registrations, restarts. */
  time: 2,
} as const;

export type Lane = (typeof lanes)[keyof typeof lanes];

/**
 * Why a key wants a run; stands in records, logs, Events and requests, with what it is about after a colon:
 * `InputChanged:/status/outputs/network/vnetName`.
 */
export const triggerReasons = {
  created: 'Created',
  configChanged: 'ConfigChanged',
  inputChanged: 'InputChanged',
  /** What the last run was missing is there. */
  inputArrived: 'InputArrived',
  forced: 'Forced',
  remote: 'Remote',
  registrationChanged: 'RegistrationChanged',
  interval: 'Interval',
  /** The component asked for it. */
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

/** The lane of each reason, where nobody says otherwise. */
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

/** A trigger at once, in the lane of its reason, about nothing, unless said otherwise. */
export function trigger(reason: TriggerReason, rest: Partial<Omit<Trigger, 'reason'>> = {}): Trigger {
  return { reason, about: undefined, lane: laneByReason[reason], atMs: undefined, ...rest };
}

/** As records, requests and logs have it. */
export const reasonText = ({ reason, about }: Trigger): string =>
  (about === undefined ? reason : `${reason}:${about}`).slice(0, maxReasonLength);

const maxReasonLength = 316;

/** What a key is to be run for. */
export interface Pending {
  readonly triggers: readonly Trigger[];
  readonly lane: Lane;
  /** Monotonic milliseconds; the earliest of all. */
  readonly dueAt: number;
}

/** What time it is: epoch and monotonic milliseconds. */
interface Now {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** One more of them: reasons are merged, the most urgent lane and the earliest time count. */
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

/** Each reason once; of more than a record keeps, those go first that a look at the entry would find again. */
export function mergeTriggers(before: readonly Trigger[], more: readonly Trigger[]): readonly Trigger[] {
  const merged = [...before];
  for (const trigger of more) {
    if (!merged.some((known) => sameReason(known, trigger))) merged.push(trigger);
  }
  if (merged.length <= maxReasons) return merged;
  const kept = new Set([...new Set([...merged.filter(isNotInEntry), ...merged])].slice(0, maxReasons));
  return merged.filter((trigger) => kept.has(trigger));
}

/** Nothing in the entry shows it: what is forgotten of it is lost. */
const isNotInEntry = ({ reason }: Trigger): boolean =>
  reason === 'Remote' || reason === 'Forced' || reason === 'Deleting';

const sameReason = (a: Trigger, b: Trigger): boolean => reasonText(a) === reasonText(b);
