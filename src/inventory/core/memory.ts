import type { ComponentState } from '../../api/inventory/cluster-inventory.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { ReportCode } from '../../api/inventory/http-codes.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { EntryReaders } from './digest.ts';
import type { RunRecord } from './run-record.ts';
import type { RecentStart } from './timing.ts';
import { type Lane, lanes, type PendingTriggers, type Trigger, type TriggerReason } from './triggers.ts';

/**
 * What the leader remembers of a key beside its record. Losing it costs at most one more run. One
 * for each key, so small. Instants are monotonic milliseconds.
 */
export class Memory {
  /** Changes that no run has handled. */
  pending: PendingTriggers | undefined;
  /** The oldest of them. */
  oldest: { readonly lane: number; readonly since: number } | undefined;
  /** The active run of the record, or the one whose start is being stored. */
  run: ActiveRun | undefined;
  /** Digest of a run whose start is being stored. */
  starting: string | undefined;
  /** A call has no answer yet, possibly of an ended run. */
  isCalling = false;
  /** The component may have read these inputs, so it must run again, even if they changed back. */
  inputsChanged = false;
  /** A missing input did not hold since the last start. Used only after MissingAlreadySatisfied. */
  sawMissing = false;
  wake: Wake | undefined;
  /** Since when changes of watched objects may be missed, and how often the component then runs. */
  unwatched: { readonly since: number; readonly periodMs: number } | undefined;
  /** Resource version of the last record that was handled; undefined before the first one. */
  version: string | undefined;
  /** An estimate if another process started the run. */
  lastStart: number | undefined;
  /** Starts by this process, at most 64, for livelock detection. Repeats of a digest count once. */
  recentStarts: readonly RecentStart[] = [];
  /** Message of the entry's condition Livelock. */
  livelock: string | undefined;
  /** Of the last started run. */
  rejectedReport: RejectedReport | undefined;
  /** The run may have ended with this record: its write has no answer yet, or lost it. */
  ending: { readonly before: RunRecord; readonly after: RunRecord } | undefined;
  /** A run whose start may be stored: the same. */
  unsure: ActiveRun | undefined;
  /** Why the last step failed, shown until one succeeds. */
  problem: Problem | undefined;
  /** Steps that failed in a row, and when the next try follows, whatever changes until then. */
  failures = 0;
  retryAt = Number.NEGATIVE_INFINITY;
  /** When the next run is due; undefined during a run, and if none may start. */
  dueAt: number | undefined;
  lane: Lane = lanes.time;
  /** Calls in a row that the server could not make. */
  uncalled = 0;
  /** The circuit breaker admitted no call. */
  isUnreachable = false;

  /** Forgets the other waiting triggers. */
  keep(isKept: (waiting: Trigger) => boolean): void {
    const left = this.pending?.triggers.filter(isKept) ?? [];
    this.pending = this.pending && left.length > 0 ? { ...this.pending, triggers: left } : undefined;
  }
}

/** The next run of the record if no trigger starts one earlier. */
export interface Wake {
  /** Of the record, see `wakeVersion`. */
  readonly version: string;
  readonly at: number;
  readonly reason: TriggerReason;
}

export const wakeVersion = ({ seq, phase, nextAtMs }: RunRecord): string => `${seq}/${phase}/${nextAtMs}`;

/** Shown in place of the status. */
export interface Problem {
  readonly state: ComponentState;
  readonly reason: string;
  readonly message: string;
}

export interface ActiveRun {
  readonly seq: number;
  /** At the start or adoption: a run may outlive it. */
  readonly registration: Registration;
  /** Undefined if another process started the run. */
  readonly start: RunStart | undefined;
  /** Its answer or outputs were lost with another process. */
  readonly isInterrupted: boolean;
  /** Monotonic milliseconds; an estimate for an adopted run. */
  startedAt: number;
  /** The component was not called yet. */
  isUncalled: boolean;
  /** Monotonic milliseconds. */
  deadlineAt: number;
  /** From the last 202 or heartbeat that this process got. */
  heartbeatTimeoutMs: number | undefined;
  answer: Answer | undefined;
  /** Resource version of the record, once this process stored that the outputs are being written. */
  applying: string | undefined;
  /** How often the API server refused to write its outputs. */
  refusals: number;
  /** An adopted run has none until a heartbeat gets one. */
  token: RunToken | undefined;
  /** Refreshed, but its ID is not stored in the record yet. */
  pendingToken: RunToken | undefined;
  /** IDs of all tokens of the run. */
  readonly credentials: string[];
}

interface RunStart {
  readonly entry: Entry;
  readonly readers: EntryReaders;
  readonly triggers: readonly Trigger[];
  /** The record before the start, restored if the component is not called. */
  readonly before: Pick<RunRecord, 'inputsDigest' | 'operation'>;
}

/** The end of a call, or a report, that waits to be stored. */
export type Answer =
  | {
      readonly kind: 'outcome';
      readonly outcome: Outcome;
      /** The outputs are in the entry, or could not be written. */
      readonly applied?: { readonly problem: OutputsProblem | undefined };
      /** Digest of the report. */
      readonly report?: string;
    }
  /** The component answered 202. */
  | { readonly kind: 'accepted'; readonly heartbeatTimeoutMs: number }
  /** No usable answer (`CallFailureCode`). The component may have run. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** It did not run: `Busy` (429 or 503), or the server could not reach it. */
  | {
      readonly kind: 'notAccepted';
      readonly code: NotAcceptedCode;
      readonly message: string;
      readonly retryAfterMs: number | undefined;
      /** Milliseconds until the circuit breaker admits a call, unless it is closed. */
      readonly probeDelayMs: number | undefined;
    }
  /** The server got no token for the call. */
  | { readonly kind: 'notCalled'; readonly retryAfterMs: number };

/** `code`: of a Violation, or `NotWritten`. */
export interface OutputsProblem {
  readonly code: string;
  readonly message: string;
}

/** Stable codes, in records, metrics, and logs. */
export type NotAcceptedCode = 'Busy' | 'Unreachable';

export interface EndpointProblem {
  readonly code: NotAcceptedCode;
  readonly message: string;
}

export interface RunToken {
  readonly id: string;
  readonly expiresAtMs: number;
  readonly token: string;
}

/** Stable codes of reports that violate the contract. */
export type RejectedReportCode = Extract<ReportCode, 'InvalidReport' | 'TooLarge'>;

/** Reports are untrusted, so this has none of their content. A valid heartbeat clears both. */
export interface RejectedReport {
  readonly last: RejectedReportCode | undefined;
  /** The first one, which the status shows. */
  readonly shown: { readonly code: RejectedReportCode; readonly atMs: number } | undefined;
}
