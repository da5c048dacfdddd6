import { maxReasons } from '../../api/inventory/reconcile-run.ts';

/** Lanes of the queue, most urgent first. */
export const lanes = {
  /** A user waits. */
  manual: 0,
  /** Another component's output, a remote event, a conflict or late write of the record. */
  input: 1,
  time: 2,
} as const;

export type Lane = (typeof lanes)[keyof typeof lanes];

/**
 * Reasons for a run, in records, logs, and requests; details after a colon:
 * `InputChanged:/status/outputs/network/vnetName`. Events have `whyText`.
 * docs/inventory/run-reasons.md lists them.
 */
export const triggerReasons = {
  created: 'Created',
  configChanged: 'ConfigChanged',
  inputChanged: 'InputChanged',
  /** A missing input changed. Starts a run only if all missing inputs hold. */
  inputArrived: 'InputArrived',
  forced: 'Forced',
  remote: 'Remote',
  registrationChanged: 'RegistrationChanged',
  /** The interval has passed, or the delay after NotReady or Failed. */
  interval: 'Interval',
  /** `requeueAfterSeconds`, or work repeated after an internal failure or a conflict. */
  requeue: 'Requeue',
  /** The last run ended with Retry, or its call was not accepted or not made. */
  retry: 'Retry',
  deleting: 'Deleting',
} as const;

export type TriggerReason = (typeof triggerReasons)[keyof typeof triggerReasons];

export interface Trigger {
  readonly reason: TriggerReason;
  /** The path, or the watched resource; `unwatched` if the watches are unhealthy. */
  readonly detail: string | undefined;
  readonly lane: Lane;
  /** When the trigger may start a run, epoch milliseconds; default at once. */
  readonly atMs: number | undefined;
}

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
};

export function trigger(reason: TriggerReason, options: Partial<Omit<Trigger, 'reason'>> = {}): Trigger {
  return { reason, detail: undefined, lane: laneByReason[reason], atMs: undefined, ...options };
}

/** For records, requests, and logs. */
export const reasonText = ({ reason, detail }: Trigger): string =>
  (detail === undefined ? reason : `${reason}:${detail}`).slice(0, maxReasonLength);

/** As a user reads them: `/spec/cluster/region changed, retry`. */
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
  Deleting: () => 'entry is being deleted',
};

/** `detail` of a remote trigger is `managed/RESOURCE`, `management/RESOURCE`, or `unwatched`. */
function remoteInWords(detail = ''): string {
  const [cluster, resource] = detail.split('/');
  if (resource === undefined) return 'watches of the managed cluster are unhealthy';
  return `${resource} changed in ${cluster === 'managed' ? 'the managed cluster' : 'this cluster'}`;
}

/** In a ReconcileRun, characters. */
const maxReasonLength = 316;

export interface PendingTriggers {
  readonly triggers: readonly Trigger[];
  /** The most urgent lane of all triggers. */
  readonly lane: Lane;
  readonly dueAt: number;
}

interface Now {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** Merges equal reasons; keeps the most urgent lane and the earliest due time. */
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

export const withTriggers = (pending: PendingTriggers | undefined, triggers: readonly Trigger[], now: Now) =>
  triggers.reduce<PendingTriggers | undefined>((merged, trigger) => withTrigger(merged, trigger, now), pending);

/** Merges equal reason texts; keeps at most `maxReasons`, `isKeptFirst` and the oldest first. */
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

/** A dropped remote change would be lost, and a dropped forced one shown only as changed inputs. */
const isKeptFirst = ({ reason }: Trigger): boolean =>
  reason === 'Remote' || reason === 'Forced' || reason === 'Deleting';

const sameReason = (a: Trigger, b: Trigger): boolean => reasonText(a) === reasonText(b);

/** Whether a change started nothing: the time had come. */
export const isTimer = ({ reason }: Trigger): boolean => timerReasons.has(reason);

const timerReasons: ReadonlySet<string> = new Set([
  triggerReasons.interval,
  triggerReasons.requeue,
  triggerReasons.retry,
]);
