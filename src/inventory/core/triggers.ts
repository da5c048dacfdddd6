import { maxReasons } from '../../api/inventory/reconcile-run.ts';

/** Lanes of the queue, most urgent first. */
export const lanes = {
  /** A user waits: creation, configuration, force, suspension, deletion. */
  manual: 0,
  /** Another component's output, a remote event, a conflict or a late write of the run record. */
  input: 1,
  /** The interval, retries, new registrations, restarts. */
  time: 2,
} as const;

export type Lane = (typeof lanes)[keyof typeof lanes];

/**
 * Reasons for a run. Records, logs, and requests contain them, with details after a colon: `InputChanged:/status/outputs/network/vnetName`.
 * Events have `whyText`. docs/reference/run-reasons.md lists them, except `LeaseOver`.
 */
export const triggerReasons = {
  created: 'Created',
  configChanged: 'ConfigChanged',
  inputChanged: 'InputChanged',
  /** A missing input of the last outcome changed. The trigger starts a run only if all missing inputs hold. */
  inputArrived: 'InputArrived',
  forced: 'Forced',
  remote: 'Remote',
  registrationChanged: 'RegistrationChanged',
  /** The interval of the registration has passed, or the delay after NotReady or Failed. */
  interval: 'Interval',
  /** The component requested it by `requeueAfterSeconds`, or the server repeats work of the key after an internal failure or a conflict. */
  requeue: 'Requeue',
  /** The last run ended with Retry, the component did not accept its call, or the server could not call the component. */
  retry: 'Retry',
  /** The deadline of the current run may have passed. Only queued keys have this reason; the next run has the reason Retry. */
  leaseOver: 'LeaseOver',
  deleting: 'Deleting',
} as const;

export type TriggerReason = (typeof triggerReasons)[keyof typeof triggerReasons];

/** Why a run may be needed. `isWanted` decides whether it is. */
export interface Trigger {
  readonly reason: TriggerReason;
  /**
   * Details of the reason: the path, or the watched resource; `unwatched` if the watches are unhealthy. Undefined if there are none.
   */
  readonly detail: string | undefined;
  readonly lane: Lane;
  /** Time from which the trigger may start a run, epoch milliseconds; undefined: at once. */
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
export function trigger(reason: TriggerReason, options: Partial<Omit<Trigger, 'reason'>> = {}): Trigger {
  return { reason, detail: undefined, lane: laneByReason[reason], atMs: undefined, ...options };
}

/** Text form for records, requests, and logs, at most 316 characters. */
export const reasonText = ({ reason, detail }: Trigger): string =>
  (detail === undefined ? reason : `${reason}:${detail}`).slice(0, maxReasonLength);

/** The reasons of a run in words, as a user reads them: `/spec/cluster/region changed, retry`. */
export const whyText = (reasons: readonly string[]): string => reasons.map(reasonInWords).join(', ');

function reasonInWords(text: string): string {
  const colon = text.indexOf(':');
  const [reason, detail] = colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
  return isTriggerReason(reason) ? words[reason](detail) : text;
}

const isTriggerReason = (reason: string): reason is TriggerReason => Object.hasOwn(words, reason);

const words: Readonly<Record<TriggerReason, (detail: string | undefined) => string>> = {
  Created: () => 'first run for this entry',
  ConfigChanged: (path = 'configuration') => `${path} changed`,
  InputChanged: (path = 'inputs, registration, or force annotation') => `${path} changed`,
  InputArrived: (path = 'inputs') => `no longer missing: ${path}`,
  Forced: () => 'force annotation changed',
  Remote: remoteInWords,
  RegistrationChanged: () => 'registration changed',
  Interval: () => 'interval passed',
  Requeue: () => 'requeue',
  Retry: () => 'retry',
  LeaseOver: () => 'deadline passed',
  Deleting: () => 'entry is being deleted',
};

/** `detail` of a remote trigger is `managed/RESOURCE`, `management/RESOURCE`, or `unwatched`. */
function remoteInWords(detail = ''): string {
  const [cluster, resource] = detail.split('/');
  if (resource === undefined) return 'watches of the managed cluster are unhealthy';
  return `${resource} changed in ${cluster === 'managed' ? 'the managed cluster' : 'this cluster'}`;
}

/** Maximum length of a reason in a ReconcileRun, characters. */
const maxReasonLength = 316;

/** Triggers that wait for a run. */
export interface PendingTriggers {
  readonly triggers: readonly Trigger[];
  /** The most urgent lane of all triggers. */
  readonly lane: Lane;
  /** Earliest due time of all triggers, monotonic milliseconds. */
  readonly dueAt: number;
}

/** Current time: epoch and monotonic milliseconds. */
interface Now {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Adds a trigger: merges equal reasons, and keeps the most urgent lane and the earliest due time. */
function withTrigger(pending: PendingTriggers | undefined, trigger: Trigger, now: Now): PendingTriggers {
  const delayMs = Math.max(0, (trigger.atMs ?? now.nowMs) - now.nowMs);
  const dueAt = now.monotonicMs + delayMs;
  if (!pending) return { triggers: [trigger], lane: trigger.lane, dueAt };
  return {
    triggers: mergeTriggers(pending.triggers, [trigger]),
    lane: pending.lane < trigger.lane ? pending.lane : trigger.lane,
    dueAt: Math.min(dueAt, pending.dueAt),
  };
}

/** Adds triggers to the pending ones. Undefined only if there are none. */
export const withTriggers = (pending: PendingTriggers | undefined, triggers: readonly Trigger[], now: Now) =>
  triggers.reduce<PendingTriggers | undefined>((merged, trigger) => withTrigger(merged, trigger, now), pending);

/** Merges triggers with equal reason texts, and keeps at most `maxReasons`: first those of `isKeptFirst`, then the oldest. */
export function mergeTriggers(existing: readonly Trigger[], added: readonly Trigger[]): readonly Trigger[] {
  const merged = [...existing];
  for (const trigger of added) {
    if (!merged.some((other) => sameReason(other, trigger))) merged.push(trigger);
  }
  if (merged.length <= maxReasons) return merged;
  const keptFirst = merged.filter(isKeptFirst);
  const others = merged.filter((trigger) => !isKeptFirst(trigger));
  const kept = new Set([...keptFirst, ...others].slice(0, maxReasons));
  return merged.filter((trigger) => kept.has(trigger));
}

/**
 * Whether a trigger is kept if there are too many. `entryTriggers` would not find a dropped remote change again, and would report a
 * dropped forced run only as changed inputs. A deletion is most urgent.
 */
const isKeptFirst = ({ reason }: Trigger): boolean =>
  reason === 'Remote' || reason === 'Forced' || reason === 'Deleting';

const sameReason = (a: Trigger, b: Trigger): boolean => reasonText(a) === reasonText(b);
