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
const laneOf: Readonly<Record<TriggerReason, Lane>> = {
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
  return { reason, about: undefined, lane: laneOf[reason], atMs: undefined, ...rest };
}

/** As records, requests and logs have it. */
export const reasonText = ({ reason, about }: Trigger): string =>
  (about === undefined ? reason : `${reason}:${about}`).slice(0, maxReasonLength);

const maxReasonLength = 316;
