import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import type { EntryRef } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord, StoredRecord } from './run-record.ts';
import type { Lane, Pending, Trigger, TriggerReason } from './triggers.ts';

/** State of a key. Only `stored` survives a restart. */
export interface KeyState {
  /**
   * `idle`; `queued`: waits for a slot; `starting`: the server requests a token and stores the record; `running`; `applying`: the server
   * writes outputs; `draining`: the entry is being deleted, and its current run must end first; `gone`.
   */
  readonly phase: 'idle' | 'queued' | 'starting' | 'running' | 'applying' | 'draining' | 'gone';
  readonly stored: StoredRecord | undefined;
  /** Triggers that no run has handled yet. From `starting` on: the triggers that arrived during the run. */
  readonly pending: Pending | undefined;
  /** Why the current run was started, and what the record contained before. */
  readonly cause: RunCause | undefined;
  /** Time and reason of the next run if nothing triggers one earlier. Undefined during a run. */
  readonly wake: { readonly at: number; readonly reason: TriggerReason } | undefined;
  /** Deadline of the current run, monotonic milliseconds. A `deadline` event before it has no effect. */
  readonly deadlineAt: number | undefined;
  /** The outcome whose outputs the server is writing. */
  readonly outcome: OutcomeWithOutputs | undefined;
  /** Time of the last start, monotonic milliseconds. The next start is at least 200 ms later. */
  readonly lastStart: number | undefined;
  /** Recent starts, for livelock detection. Consecutive starts with the same digest count as one. */
  readonly recentStarts: readonly RecentStart[];
  /**
   * The inputs differed from those of the start during the current run. The component may have read them, so it must run again even if the
   * inputs are back.
   */
  readonly inputsChanged: boolean;
  /** After the last run, the server has observed that its missing inputs were absent. */
  readonly sawMissing: boolean;
  /** The status that was last reported. */
  readonly status: KeyStatus | undefined;
}

/** An outcome that may have outputs. */
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
  /** Restored if the run does not happen. */
  readonly before: Pick<RunRecord, 'inputsDigest' | 'operation'>;
}

/** What the newest version of the entry says about this key, at the time of the event. */
export interface Inputs {
  /** Digest from `digestInputs`. */
  readonly digest: string;
  /** The resourceVersion of that version. */
  readonly resourceVersion: string;
  /** Whether all missing inputs of the last run are present. */
  readonly arrived: boolean;
  /** The operation that may start. `no`: none, for the reason `why`. */
  readonly mayRun: { readonly may: 'reconcile' | 'delete' } | { readonly may: 'no'; readonly why: NotRunReason };
}

export type NotRunReason =
  | 'Suspended'
  | 'Disabled'
  | 'NotApplicable'
  | 'TooLarge'
  | 'RegistrationRefused'
  | 'Abandoned';

/** Events of a key. Each row of the state table handles one of them. */
export type KeyEvent =
  /** Something may have changed. `step` compares digests to decide whether a run is needed. */
  | { readonly kind: 'trigger'; readonly trigger: Trigger; readonly inputs: Inputs }
  /** The queue dequeued the key: a slot is free, and the endpoint's circuit breaker is closed. */
  | { readonly kind: 'slot'; readonly inputs: Inputs }
  /** The result of the effect `start`. */
  | { readonly kind: 'started'; readonly stored: StoredRecord; readonly inputs: Inputs }
  /** Another writer changed the record; `stored` is its current version. Effects that depended on the failed write were skipped. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** The component answered 202. */
  | { readonly kind: 'accepted'; readonly leaseMs: number }
  | { readonly kind: 'heartbeat'; readonly leaseMs: number; readonly credential: Credential | undefined }
  /** The outcome of run `seq`, from an answer or a report. */
  | ({ readonly kind: 'outcome'; readonly seq: number; readonly outcome: Outcome } & WithInputs)
  /** The outputs are in the entry. With a `refusal`, the run becomes Failed if the component broke a rule, otherwise Retry. */
  | ({
      readonly kind: 'applied';
      readonly refusal: { readonly code: string; readonly message: string } | undefined;
    } & WithInputs)
  /** The call timed out, or its answer was invalid, incomplete, or a 4xx. The component may have run. */
  | ({ readonly kind: 'callFailed'; readonly code: string; readonly message: string } & WithInputs)
  /**
   * The component answered 429 or 503, or there was no connection: it did not run. `notCalled`: the server did not call the endpoint at
   * all.
   */
  | ({
      readonly kind: 'notAccepted';
      readonly retryAfterMs: number | undefined;
      readonly notCalled?: true;
    } & WithInputs)
  | ({ readonly kind: 'deadline' } & WithInputs)
  /** The record that the server found at startup, or that the watch reported after another writer changed it. */
  | { readonly kind: 'recordChanged'; readonly stored: StoredRecord | undefined; readonly inputs: Inputs }
  /** The entry has a deletionTimestamp. */
  | ({ readonly kind: 'deleting' } & WithInputs)
  /** The entry no longer exists. */
  | { readonly kind: 'gone' };

export type KeyEventOf<Kind extends KeyEvent['kind']> = Extract<KeyEvent, { readonly kind: Kind }>;

export interface Credential {
  readonly id: string;
  readonly expiresAtMs: number;
}

/** Inputs at the time of the event. */
interface WithInputs {
  readonly inputs: Inputs;
  /** For the missing inputs of the outcome itself: whether all held in the version that started the run, and whether all hold now. */
  readonly missing?: { readonly heldAtStart: boolean; readonly holdsNow: boolean };
}

/** Effects, in the order in which they must be executed. */
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
   * calls nothing before the record is stored. If the attempt fails, the event `conflict` with the stored record, or the next `slot`,
   * retries. The first record of a key has no base; only the leader election Lease protects it, as with `apply` and `retire`.
   */
  | { readonly kind: 'start'; readonly next: RunRecord; readonly base: StoredRecord | undefined }
  /** Call the component for the run that `started` stored. */
  | { readonly kind: 'call' }
  /**
   * Compare-and-swap the record; the event `conflict` follows if the base has changed. The executor retries while the API server is
   * unavailable. The state already contains `next`; the executor replaces it in `stored` with the stored version.
   */
  | { readonly kind: 'store'; readonly next: RunRecord; readonly base: StoredRecord }
  /** Write outputs into the entry, one component of an entry at a time. The event `applied` follows. */
  | { readonly kind: 'apply'; readonly outputs: Readonly<Record<string, unknown>> }
  /**
   * Remove the component's outputs, then its record: the component is Deleted or abandoned. `ended` is the record after the run that this
   * ends, for reporting; it is not stored.
   */
  | { readonly kind: 'retire'; readonly base: StoredRecord; readonly ended: RunRecord | undefined }
  /** Record the result of a call in the circuit breaker of the endpoint. */
  | { readonly kind: 'endpoint'; readonly verdict: 'answered' | 'failed'; readonly retryAfterMs: number | undefined }
  /** Report the component's status in the entry. */
  | { readonly kind: 'reportStatus'; readonly status: KeyStatus }
  | { readonly kind: 'warn'; readonly code: 'MissingAlreadySatisfied' | 'Livelock'; readonly message: string };

export interface KeyStatus {
  readonly state: ComponentState;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly observedInputs: string | undefined;
  /** Message of the entry's condition Livelock, while the component's inputs keep returning. */
  readonly livelock: string | undefined;
}

/** A status that no run produced. */
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
  /** Wall clock, epoch milliseconds, for stored values. */
  readonly nowMs: number;
  /** Monotonic milliseconds, for spacing and livelock detection. */
  readonly monotonicMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The entry, for the first record. */
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
