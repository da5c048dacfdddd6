import type { InventoryCode } from '../../api/codes.ts';
import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReportCode } from '../../api/inventory/http-codes.ts';
import type { EntryRef } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord, StoredRecord } from './run-record.ts';
import type { Lane, PendingTriggers, Trigger, TriggerReason } from './triggers.ts';

/**
 * State of one key: one component of one entry. Only `stored` survives a restart.
 *
 * - `idle`: no trigger waits, or no run may start; then `pending` keeps the triggers.
 * - `queued`: waits until its triggers are due and it gets a slot (see `Limits`).
 * - `starting`: the server requests a token and stores the record.
 * - `running`: the component works; `applying`: the server writes its outputs.
 * - `draining`: the entry is being deleted, and the current run must end first.
 * - `gone`: retired or nothing to tear down. `idle` again if an abandonment is withdrawn.
 */
export interface KeyState {
  readonly phase: 'idle' | 'queued' | 'starting' | 'running' | 'applying' | 'draining' | 'gone';
  readonly stored: StoredRecord | undefined;
  /** Triggers that no run has handled. From `starting` on, only those after the start. */
  readonly pending: PendingTriggers | undefined;
  /** Why the current run started, and the record before; only if this process started it. */
  readonly cause: RunCause | undefined;
  /** The next run if no trigger starts one earlier. `at`: monotonic milliseconds. */
  readonly wake: { readonly at: number; readonly reason: TriggerReason } | undefined;
  /** Of the run in `running` and `draining`, monotonic. An earlier `dequeued` only re-enqueues. */
  readonly deadlineAt: number | undefined;
  /** From the last 202 or heartbeat of the last started run that this process got, milliseconds. */
  readonly heartbeatTimeoutMs: number | undefined;
  readonly outcome: OutcomeWithOutputs | undefined;
  /** Monotonic milliseconds; an estimate if another process started the run. */
  readonly lastStart: number | undefined;
  /** Starts by this process, at most 64, for livelock detection. Repeats of a digest count once. */
  readonly recentStarts: readonly RecentStart[];
  /** The component may have read these inputs, so it must run again, even if they changed back. */
  readonly inputsChanged: boolean;
  /** A missing input did not hold since the last start. Used only after MissingAlreadySatisfied. */
  readonly sawMissing: boolean;
  /** Reports of the last started run that this process rejected. */
  readonly rejectedReport: RejectedReport | undefined;
  readonly status: KeyStatus | undefined;
}

export type OutcomeWithOutputs = Extract<Outcome, { readonly outcome: 'Done' | 'Progressing' }>;

/** Stable codes of reports that violate the contract. */
export type RejectedReportCode = Extract<ReportCode, 'InvalidReport' | 'TooLarge'>;

/** Reports are untrusted, so this has none of their content. A valid heartbeat clears both. */
interface RejectedReport {
  readonly last: RejectedReportCode | undefined;
  /** The first one, which the status shows. */
  readonly shown: { readonly code: RejectedReportCode; readonly atMs: number } | undefined;
}

export interface RecentStart {
  readonly digest: string;
  readonly monotonicMs: number;
}

interface RunCause {
  readonly digest: string;
  readonly triggers: readonly Trigger[];
  readonly lane: Lane;
  /** The record before the start, restored if the component is not called. */
  readonly before: Pick<RunRecord, 'inputsDigest' | 'operation'>;
}

/** What the key sees of the entry that the watch last reported. */
export interface Inputs {
  readonly digest: string;
  /** Of the entry. */
  readonly resourceVersion: string;
  /** Whether all missing inputs of the last outcome hold. True if it has none. */
  readonly arrived: boolean;
  /** The operation that may start. */
  readonly mayRun: { readonly may: 'reconcile' | 'delete' } | { readonly may: 'no'; readonly why: NotRunReason };
}

/** Why a component may not run; also `reason` in the entry's status. */
export type NotRunReason =
  | 'Suspended'
  | 'Disabled'
  | 'NotApplicable'
  | 'TooLarge'
  | 'RegistrationRefused'
  | 'Abandoned';

export type KeyEvent =
  /** A run may be needed; `isWanted` decides. */
  | { readonly kind: 'trigger'; readonly trigger: Trigger; readonly inputs: Inputs }
  /** The key has a slot (see `Limits`) and the breaker admits a call, or a deadline is due. */
  | { readonly kind: 'dequeued'; readonly inputs: Inputs }
  | { readonly kind: 'started'; readonly stored: StoredRecord; readonly inputs: Inputs }
  /** A lost compare-and-swap, or a failed start (`stored`: its base), which skips later effects. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** The component answered 202. */
  | ({ readonly kind: 'accepted'; readonly heartbeatTimeoutMs: number } & WithInputs)
  /** `credential`: the token that the server issued for the heartbeat, if any. */
  | ({
      readonly kind: 'heartbeat';
      readonly heartbeatTimeoutMs: number;
      readonly credential: Credential | undefined;
    } & WithInputs)
  /** A report that violates the contract, with the token of the current run. */
  | ({ readonly kind: 'reportRejected'; readonly code: RejectedReportCode } & WithInputs)
  /** The outcome of run `seq`, from an answer or a report. */
  | ({ readonly kind: 'outcome'; readonly seq: number; readonly outcome: Outcome } & WithInputs)
  /** The outputs are in the entry. If not, a broken rule ends the run as Failed, else as Retry. */
  | ({
      readonly kind: 'applied';
      readonly problem: { readonly code: string; readonly message: string } | undefined;
    } & WithInputs)
  /** No usable answer (`CallFailureCode`). The component may have run. */
  | ({ readonly kind: 'callFailed'; readonly code: string; readonly message: string } & WithInputs)
  /** It did not run: `Busy` (429 or 503), or the server could not reach it. */
  | ({
      readonly kind: 'notAccepted';
      readonly code: NotAcceptedCode;
      readonly message: string;
      readonly retryAfterMs: number | undefined;
      /** Milliseconds until the circuit breaker admits a call, unless it is closed. */
      readonly probeDelayMs: number | undefined;
    } & WithInputs)
  /** The server got no token for the call. */
  | ({ readonly kind: 'notCalled'; readonly retryAfterMs: number | undefined } & WithInputs)
  /** The store has this record, or none; another process may have written it. */
  | { readonly kind: 'recordChanged'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** A run is due, but the circuit breaker admits no call. */
  | ({ readonly kind: 'endpointUnavailable' } & WithInputs)
  | ({ readonly kind: 'deleting' } & WithInputs);

export type KeyEventOf<Kind extends KeyEvent['kind']> = Extract<KeyEvent, { readonly kind: Kind }>;

/** Stable codes, in records, metrics, and logs. */
export type NotAcceptedCode = 'Busy' | 'Unreachable';

export interface EndpointProblem {
  readonly code: NotAcceptedCode;
  readonly message: string;
}

export interface Credential {
  readonly id: string;
  readonly expiresAtMs: number;
}

interface WithInputs {
  readonly inputs: Inputs;
  /**
   * Only for NotReady: whether all its missing inputs held at the start (false if another process
   * started the run), and hold now.
   */
  readonly missing?: { readonly heldAtStart: boolean; readonly holdsNow: boolean };
}

/** Executed in the order in which `step` returns them. */
export type Effect =
  | {
      readonly kind: 'enqueue';
      readonly delayMs: number;
      readonly lane: Lane;
      readonly reasons: readonly string[];
    }
  /**
   * Get a token, put its ID into `next`, store it. The event `started` or `conflict` follows. Only
   * the Lease stops a former leader from recreating a removed record.
   */
  | { readonly kind: 'start'; readonly next: RunRecord; readonly base: StoredRecord | undefined }
  | { readonly kind: 'call' }
  /**
   * Compare-and-swap the record, which the state already has; `conflict` if the base changed.
   * Retried while the API server is away; a rejection shows in the status.
   */
  | { readonly kind: 'store'; readonly next: RunRecord; readonly base: StoredRecord }
  /** Write outputs, one component of an entry at a time. The event `applied` follows. */
  | { readonly kind: 'apply'; readonly outputs: Readonly<Record<string, unknown>> }
  /**
   * Remove the outputs, then the record, of a Deleted or abandoned component. `ended`: the run that
   * just ended, to report and not to store.
   */
  | { readonly kind: 'retire'; readonly base: StoredRecord; readonly ended: RunRecord | undefined }
  /** Tell the circuit breaker whether the component accepted. A timeout counts as `answered`. */
  | {
      readonly kind: 'recordCallResult';
      readonly verdict: 'answered' | 'failed';
      readonly retryAfterMs: number | undefined;
      readonly problem?: EndpointProblem;
    }
  | { readonly kind: 'reportStatus'; readonly status: KeyStatus }
  /** Log a warning and record an Event of the entry with this code. */
  | { readonly kind: 'warn'; readonly code: WarningCode; readonly message: string };

export type WarningCode = Extract<InventoryCode, 'MissingAlreadySatisfied' | 'Livelock' | 'ReportRejected'>;

export interface KeyStatus {
  readonly state: ComponentState;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  /** Of the last run that ended; undefined if the inputs changed during it, or are unknown. */
  readonly observedInputs: string | undefined;
  /** Message of the entry's condition Livelock. */
  readonly livelock: string | undefined;
}

/** A status that does not come from a run. */
export const plainStatus = (state: KeyStatus['state'], reason: string, message?: string): KeyStatus => ({
  state,
  reason,
  message,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
});

export interface StepContext {
  readonly nowMs: number;
  /** For deadlines, spacing, and livelock detection. */
  readonly monotonicMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly entry: EntryRef;
  readonly registration: Registration;
}

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
