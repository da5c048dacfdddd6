import type { InventoryCode } from '../../api/codes.ts';
import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReportCode } from '../../api/inventory/http-codes.ts';
import type { EntryRef } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord, StoredRecord } from './run-record.ts';
import type { Lane, PendingTriggers, Trigger, TriggerReason } from './triggers.ts';

/** State of a key. Only `stored` survives a restart. */
export interface KeyState {
  /**
   * - `idle`: no trigger waits for a run, or no run may start: then `pending` keeps the triggers until one may.
   * - `queued`: the key waits until its triggers are due and it gets a slot (see `Limits`).
   * - `starting`: the server requests a token and stores the record.
   * - `running`: the component works on the run.
   * - `applying`: the server writes the outputs into the entry.
   * - `draining`: the entry is being deleted, and the current run must end first.
   * - `gone`: the key was retired or needs no teardown. `stored` may still be the old record. The key becomes `idle` again if a user
   *   withdraws the abandonment of its component.
   */
  readonly phase: 'idle' | 'queued' | 'starting' | 'running' | 'applying' | 'draining' | 'gone';
  readonly stored: StoredRecord | undefined;
  /** Triggers that no run has handled yet. From `starting` on, only those that arrived after the start. */
  readonly pending: PendingTriggers | undefined;
  /** Why the current run was started, and what the record contained before. Undefined without a run, and if another process started it. */
  readonly cause: RunCause | undefined;
  /** Time, in monotonic milliseconds, and reason of the next run if no trigger starts one earlier. Undefined during a run. */
  readonly wake: { readonly at: number; readonly reason: TriggerReason } | undefined;
  /**
   * Deadline of the current run, monotonic milliseconds. Undefined outside of the phases `running` and `draining`. A `dequeued` event
   * before the deadline only enqueues the key again.
   */
  readonly deadlineAt: number | undefined;
  /** Heartbeat timeout of the last answer 202 or heartbeat of the last started run, milliseconds; undefined before this process got one. */
  readonly heartbeatTimeoutMs: number | undefined;
  /** The outcome whose outputs the server is writing. */
  readonly outcome: OutcomeWithOutputs | undefined;
  /**
   * Time of the last start, monotonic milliseconds; an estimate if another process started the run. Undefined before the first start. The
   * next start is at least 200 ms later, or more in a livelock.
   */
  readonly lastStart: number | undefined;
  /** Starts by this process, at most 64, for livelock detection. Consecutive starts with the same digest count as one. */
  readonly recentStarts: readonly RecentStart[];
  /**
   * During the current run, the inputs differed from those at its start. The component may have read them, so it must run again, even if
   * the inputs have returned to their old values.
   */
  readonly inputsChanged: boolean;
  /** Since the last start, the server saw that a missing input did not hold. Used only after MissingAlreadySatisfied. */
  readonly sawMissing: boolean;
  /** The reports of the last started run that this process rejected; undefined if there are none. */
  readonly rejectedReport: RejectedReport | undefined;
  /** The status that was last reported; undefined before the first report. */
  readonly status: KeyStatus | undefined;
}

/** An outcome that may have outputs. */
export type OutcomeWithOutputs = Extract<Outcome, { readonly outcome: 'Done' | 'Progressing' }>;

/** Stable codes of reports that violate the contract. */
export type RejectedReportCode = Extract<ReportCode, 'InvalidReport' | 'TooLarge'>;

/** Rejected reports of a run. A report is untrusted, so nothing of its content is here. */
interface RejectedReport {
  /** Code of the last one; undefined once the component sent a valid heartbeat. */
  readonly last: RejectedReportCode | undefined;
  /** The first one of the run, which the status shows; undefined once the component sent a valid heartbeat. */
  readonly shown: { readonly code: RejectedReportCode; readonly atMs: number } | undefined;
}

/** A start of the key. */
export interface RecentStart {
  readonly digest: string;
  /** Time of the start, on the monotonic clock. */
  readonly monotonicMs: number;
}

/** Why this process started a run. */
interface RunCause {
  readonly digest: string;
  readonly triggers: readonly Trigger[];
  readonly lane: Lane;
  /** Values of the record before the start. The server restores them if it does not call the component. */
  readonly before: Pick<RunRecord, 'inputsDigest' | 'operation'>;
}

/** The key's view of the entry that the watch last reported before the event. */
export interface Inputs {
  /** Digest from `digestInputs`. */
  readonly digest: string;
  /** The resourceVersion of the entry. */
  readonly resourceVersion: string;
  /** Whether all missing inputs of the last outcome hold. Also true if it has none. */
  readonly arrived: boolean;
  /** The operation that may start. `no`: none may, and `why` is the reason. */
  readonly mayRun: { readonly may: 'reconcile' | 'delete' } | { readonly may: 'no'; readonly why: NotRunReason };
}

/** Why a component may not run for an entry; also values of `reason` in the entry's status. */
export type NotRunReason =
  | 'Suspended'
  | 'Disabled'
  | 'NotApplicable'
  | 'TooLarge'
  | 'RegistrationRefused'
  | 'Abandoned';

/** Events of a key. */
export type KeyEvent =
  /** A run may be needed; `isWanted` decides. */
  | { readonly kind: 'trigger'; readonly trigger: Trigger; readonly inputs: Inputs }
  /**
   * The queue dequeued the key. Without a run, the key has a slot (see `Limits`), and the circuit breaker admits a call. During a run,
   * `step` checks the deadline.
   */
  | { readonly kind: 'dequeued'; readonly inputs: Inputs }
  /** The result of the effect `start`. */
  | { readonly kind: 'started'; readonly stored: StoredRecord; readonly inputs: Inputs }
  /**
   * A write lost the compare-and-swap, or a start failed. `stored` is the current record; after a failed start, the base. The later writes
   * and the call were skipped.
   */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** The component answered 202. */
  | ({ readonly kind: 'accepted'; readonly heartbeatTimeoutMs: number } & WithInputs)
  /** The component sent a heartbeat. `credential`: the token that the server issued for it, if any. */
  | ({
      readonly kind: 'heartbeat';
      readonly heartbeatTimeoutMs: number;
      readonly credential: Credential | undefined;
    } & WithInputs)
  /** The component sent a report that violates the contract, with the token of the current run. */
  | ({ readonly kind: 'reportRejected'; readonly code: RejectedReportCode } & WithInputs)
  /** The outcome of run `seq`, from an answer or a report. */
  | ({ readonly kind: 'outcome'; readonly seq: number; readonly outcome: Outcome } & WithInputs)
  /**
   * The outputs are in the entry. With a `problem` they are not: the run ends as Failed if the component broke a rule, otherwise as Retry.
   */
  | ({
      readonly kind: 'applied';
      readonly problem: { readonly code: string; readonly message: string } | undefined;
    } & WithInputs)
  /** The call failed, or its answer is unusable (`CallFailureCode`). The component may have run. */
  | ({ readonly kind: 'callFailed'; readonly code: string; readonly message: string } & WithInputs)
  /** The component did not run: it answered 429 or 503 (`Busy`), or the server could not reach it. */
  | ({
      readonly kind: 'notAccepted';
      readonly code: NotAcceptedCode;
      readonly message: string;
      readonly retryAfterMs: number | undefined;
      /** Delay until the circuit breaker admits a call, milliseconds; undefined if this failed call leaves it closed. */
      readonly probeDelayMs: number | undefined;
    } & WithInputs)
  /** The server did not call the component, because it got no token for the call. */
  | ({ readonly kind: 'notCalled'; readonly retryAfterMs: number | undefined } & WithInputs)
  /** The store has this record, or none. The state may have another one, for example after another process wrote the record. */
  | { readonly kind: 'recordChanged'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** A run is due, but the circuit breaker of the component's endpoint admits no call. */
  | ({ readonly kind: 'endpointUnavailable' } & WithInputs)
  /** The entry has a deletionTimestamp. */
  | ({ readonly kind: 'deleting' } & WithInputs);

export type KeyEventOf<Kind extends KeyEvent['kind']> = Extract<KeyEvent, { readonly kind: Kind }>;

/** Stable codes of calls that the component did not accept, in records, metrics, and logs. */
export type NotAcceptedCode = 'Busy' | 'Unreachable';

/** Why the component did not accept a call. */
export interface EndpointProblem {
  readonly code: NotAcceptedCode;
  readonly message: string;
}

/** ID and expiry of a token. */
export interface Credential {
  readonly id: string;
  readonly expiresAtMs: number;
}

/** Inputs at the time of the event. */
interface WithInputs {
  readonly inputs: Inputs;
  /**
   * Set only for the outcome NotReady: whether all missing inputs of this outcome held when the run started, and whether they hold now.
   * `heldAtStart` is false if another process started the run.
   */
  readonly missing?: { readonly heldAtStart: boolean; readonly holdsNow: boolean };
}

/** An effect of an event. `step` returns effects in the order in which they must be executed. */
export type Effect =
  /** Enqueue the key. Repeated effects merge. */
  | {
      readonly kind: 'enqueue';
      /** Monotonic milliseconds, so clock jumps have no effect. */
      readonly delayMs: number;
      readonly lane: Lane;
      readonly reasons: readonly string[];
    }
  /**
   * Request a token, put its ID into `next`, and compare-and-swap the record. The result is the event `started` or `conflict`. The server
   * calls the component only after the record is stored. A failed attempt also results in `conflict`, and the next `dequeued` event
   * retries. Without a base, the create conflicts only with an existing record. Only the leader election Lease prevents a former leader
   * from recreating a removed record, and from executing `apply` and `retire`.
   */
  | { readonly kind: 'start'; readonly next: RunRecord; readonly base: StoredRecord | undefined }
  /** Call the component for the run that `started` stored. */
  | { readonly kind: 'call' }
  /**
   * Compare-and-swap the record; the event `conflict` follows if the base has changed. The executor retries while the API server is
   * unavailable. The state already contains `next`; after the write, the executor replaces it with the stored version. If the API server
   * keeps rejecting the record, the executor shows that in the status and retries later.
   */
  | { readonly kind: 'store'; readonly next: RunRecord; readonly base: StoredRecord }
  /** Write outputs into the entry, one component of an entry at a time. The event `applied` follows. */
  | { readonly kind: 'apply'; readonly outputs: Readonly<Record<string, unknown>> }
  /**
   * Remove the outputs of a Deleted or abandoned component, then its record. `ended` is the record after the run that just ended, if any.
   * The server reports it and does not store it.
   */
  | { readonly kind: 'retire'; readonly base: StoredRecord; readonly ended: RunRecord | undefined }
  /**
   * Record the result of a call in the circuit breaker of the component's endpoint. `failed`: the component did not accept the call. A
   * timeout counts as `answered`.
   */
  | {
      readonly kind: 'recordCallResult';
      readonly verdict: 'answered' | 'failed';
      readonly retryAfterMs: number | undefined;
      /** Why the call failed. */
      readonly problem?: EndpointProblem;
    }
  /** Report the component's status in the entry. */
  | { readonly kind: 'reportStatus'; readonly status: KeyStatus }
  /** Write a warning to the log, and record an Event of the entry with this code. */
  | { readonly kind: 'warn'; readonly code: WarningCode; readonly message: string };

/** Codes of Events that warn about a component. */
export type WarningCode = Extract<InventoryCode, 'MissingAlreadySatisfied' | 'Livelock' | 'ReportRejected'>;

/** The component's status for the entry. */
export interface KeyStatus {
  readonly state: ComponentState;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  /**
   * Digest of the inputs of the last run that ended; undefined if it is unknown, for example because the inputs changed during that run.
   */
  readonly observedInputs: string | undefined;
  /** Message of the entry's condition Livelock; undefined if there is no livelock. */
  readonly livelock: string | undefined;
}

/** A status that does not come from a run. Default: no message. */
export const plainStatus = (state: KeyStatus['state'], reason: string, message?: string): KeyStatus => ({
  state,
  reason,
  message,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
});

/** Clocks, randomness, and the registration at the time of an event. */
export interface StepContext {
  /** Epoch milliseconds, for stored values. */
  readonly nowMs: number;
  /** Monotonic milliseconds, for deadlines, spacing, and livelock detection. */
  readonly monotonicMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Identifies the entry in the first record. */
  readonly entry: EntryRef;
  readonly registration: Registration;
}

/** State of a key without events. */
export const initialKeyState: KeyState = {
  phase: 'idle',
  stored: undefined,
  pending: undefined,
  cause: undefined,
  wake: undefined,
  deadlineAt: undefined,
  heartbeatTimeoutMs: undefined,
  outcome: undefined,
  lastStart: undefined,
  recentStarts: [],
  inputsChanged: false,
  sawMissing: false,
  rejectedReport: undefined,
  status: undefined,
};
