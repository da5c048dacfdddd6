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
