import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import type { EntryRef } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord, StoredRecord } from './run-record.ts';
import type { Lane, Pending, Trigger, TriggerReason } from './triggers.ts';

/** What is known of a key. Everything but `stored` is in memory and may be lost at any time. */
export interface KeyState {
  /**
   * `idle` · `queued` for a slot · `starting`: token and record under way · `running` · `applying` outputs ·
   * `draining`: the entry goes, and the run that it has still has to end · `gone`.
   */
  readonly phase: 'idle' | 'queued' | 'starting' | 'running' | 'applying' | 'draining' | 'gone';
  readonly stored: StoredRecord | undefined;
  /** While queued: what for. From `starting` on: what has come since (dirty). */
  readonly pending: Pending | undefined;
  /** Of the run that is starting or on: what it is for, and what the record said before it. */
  readonly cause: RunCause | undefined;
  /** When it runs again by itself, and what it is called then. Undefined while a run is on. */
  readonly wake: { readonly at: number; readonly reason: TriggerReason } | undefined;
  /** Monotonic milliseconds when the run that is on counts as lost: `leaseOver` before that changes nothing. */
  readonly deadlineAt: number | undefined;
  /** The outcome whose outputs are being written. */
  readonly outcome: OutcomeWithOutputs | undefined;
  /** Monotonic milliseconds of the last start: the next one comes 200 ms later at the earliest. */
  readonly lastStart: number | undefined;
  /** The digests of the last starts, for the livelock guard; one entry for starts in a row with the same. */
  readonly recentStarts: readonly RecentStart[];
  /**
   * During the run that is on, the inputs were seen to be others than it was started with. The component may have read those, so that
   * it has to run again even if they are back.
   */
  readonly inputsChanged: boolean;
  /** Since the last run, what it was missing was seen to be missing. */
  readonly sawMissing: boolean;
  /** What was last told. */
  readonly status: KeyStatus | undefined;
}

/** An outcome that comes with outputs. */
export type OutcomeWithOutputs = Extract<Outcome, { readonly outcome: 'Done' | 'Progressing' }>;

export interface RecentStart {
  readonly digest: string;
  /** Monotonic milliseconds. */
  readonly at: number;
}

interface RunCause {
  readonly digest: string;
  readonly triggers: readonly Trigger[];
  readonly lane: Lane;
  /** A run that never happens leaves the record as if it had not been started. */
  readonly before: Pick<RunRecord, 'inputsDigest' | 'operation'>;
}

/** What the newest version of the entry says of this key, at the moment of the event. */
export interface Inputs {
  /** By `digestInputs`. */
  readonly digest: string;
  /** Of that version. */
  readonly resourceVersion: string;
  /** Whether all that the last run was missing is there. */
  readonly arrived: boolean;
  /** `no`, with the reason for its row of the status: nothing starts. */
  readonly mayRun: { readonly may: 'reconcile' | 'delete' } | { readonly may: 'no'; readonly why: NotRunReason };
}

export type NotRunReason =
  | 'Suspended'
  | 'Disabled'
  | 'NotApplicable'
  | 'TooLarge'
  | 'RegistrationRefused'
  | 'Abandoned';

/** What happens to a key. Each row of the table of states is one of these. */
export type KeyEvent =
  /** Something may have changed; whether it is worth a run is for `step` to find out, by the digest. */
  | { readonly kind: 'trigger'; readonly trigger: Trigger; readonly inputs: Inputs }
  /** The queue hands the key out: there is a slot, and the breaker of the endpoint is closed. */
  | { readonly kind: 'slot'; readonly inputs: Inputs }
  /** The answer to `start`. */
  | { readonly kind: 'started'; readonly stored: StoredRecord; readonly inputs: Inputs }
  /** Somebody else has written the record; this is how it reads now. What was to be done after that write is not done. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** 202. */
  | { readonly kind: 'accepted'; readonly leaseMs: number }
  | { readonly kind: 'heartbeat'; readonly leaseMs: number; readonly credential: Credential | undefined }
  /** An outcome of the run `seq`, in an answer or by callback. */
  | ({ readonly kind: 'outcome'; readonly seq: number; readonly outcome: Outcome } & WithInputs)
  /** Outputs are in the entry, or were refused (`Retry`, or `Failed` where they broke a rule). */
  | ({
      readonly kind: 'applied';
      readonly refusal: { readonly code: string; readonly message: string } | undefined;
    } & WithInputs)
  /** Timeout, garbage, a cut answer, a 4xx, a panic: the run may have happened. */
  | ({ readonly kind: 'callFailed'; readonly code: string; readonly message: string } & WithInputs)
  /** 429, 503, no connection: the run has not happened. `notCalled`: nor was anybody asked, for a reason of our own. */
  | ({
      readonly kind: 'notAccepted';
      readonly retryAfterMs: number | undefined;
      readonly notCalled?: true;
    } & WithInputs)
  | ({ readonly kind: 'deadline' } & WithInputs)
  /** The record as it was found at start, or by the watch after somebody else wrote it. */
  | { readonly kind: 'recordChanged'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** The entry has a deletionTimestamp. */
  | ({ readonly kind: 'deleting' } & WithInputs)
  /** The entry is not there any more. */
  | { readonly kind: 'gone' };

export type KeyEventOf<Kind extends KeyEvent['kind']> = Extract<KeyEvent, { readonly kind: Kind }>;

export interface Credential {
  readonly id: string;
  readonly expiresAtMs: number;
}

/** What was looked up when a run ended. */
interface WithInputs {
  readonly inputs: Inputs;
  /** Of the outcome's own `missing`: whether it all held in the version that the run was started with, and whether it holds now. */
  readonly missing?: { readonly heldAtStart: boolean; readonly holdsNow: boolean };
}

/** What is to be done, in this order. */
export type Effect =
  /** Put into the queue; repeated calls merge. */
  | {
      readonly kind: 'enqueue';
      /** Milliseconds of monotonic time: a jump of the clock changes nothing. */
      readonly delayMs: number;
      readonly lane: Lane;
      readonly reasons: readonly string[];
    }
  /**
   * Get a token, complete `next` with its id, compare and swap, then tell `started` or `conflict`. Nothing is sent before it is stored.
   * Where it could not be tried, `conflict` with what is stored, or the next `slot`, tries again. The first record of a key has nothing
   * to be compared with: it is guarded by the lease alone, as `apply` and `retire` are.
   */
  | { readonly kind: 'start'; readonly next: RunRecord; readonly base: StoredRecord | undefined }
  /** Call the component with what `started` stored. */
  | { readonly kind: 'call' }
  /**
   * Compare and swap; `conflict` when it is not what it was. Retried by the executor while the API is away. The state has `next` as its
   * record already; the executor puts what was stored, with its version, in `stored`.
   */
  | { readonly kind: 'store'; readonly next: RunRecord; readonly base: StoredRecord }
  /** Write outputs into the entry, one component of an entry at a time, then tell `applied`. */
  | { readonly kind: 'apply'; readonly outputs: Readonly<Record<string, unknown>> }
  /**
   * Take the component's subtree of outputs out, then remove the record: it is Deleted, or abandoned. `ended` is what the record would be
   * after the run that this ends; nothing of that is stored.
   */
  | { readonly kind: 'retire'; readonly base: StoredRecord; readonly ended: RunRecord | undefined }
  /** For the circuit breaker of the endpoint. */
  | { readonly kind: 'endpoint'; readonly verdict: 'answered' | 'failed'; readonly retryAfterMs: number | undefined }
  /** The row of the component in the entry's status, and the run's line in log, metrics and Events. */
  | { readonly kind: 'reportStatus'; readonly status: KeyStatus }
  | { readonly kind: 'warn'; readonly code: 'MissingAlreadySatisfied' | 'Livelock'; readonly message: string };

export interface KeyStatus {
  readonly state: ComponentState;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly observedInputs: string | undefined;
  /** The message of the entry's condition Livelock, while this component's inputs go round in circles. */
  readonly livelock: string | undefined;
}

/** A row without what only runs say. */
export const plainStatus = (state: KeyStatus['state'], reason: string, message?: string): KeyStatus => ({
  state,
  reason,
  message,
  missing: [],
  observedInputs: undefined,
  livelock: undefined,
});

/** What time and chance are at the moment of an event, and what the registration says. */
export interface StepContext {
  /** Wall clock, epoch milliseconds: for what is stored. */
  readonly nowMs: number;
  /** Monotonic milliseconds: for spacing and the livelock guard. */
  readonly monotonicMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Of the entry, for the first record. */
  readonly entry: EntryRef;
  readonly registration: Registration;
}

export const freshKey: KeyState = {
  phase: 'idle',
  stored: undefined,
  pending: undefined,
  cause: undefined,
  wake: undefined,
  deadlineAt: undefined,
  outcome: undefined,
  lastStart: undefined,
  recentStarts: [],
  inputsChanged: false,
  sawMissing: false,
  status: undefined,
};
