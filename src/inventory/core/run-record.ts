import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import type { EntryRef } from '../entry.ts';

type Spec = ReconcileRun['spec'];

/**
 * The stored record of one component of one entry. Instants are epoch milliseconds. `attempt` sets the backoff. It counts the Retry
 * outcomes since the last Done, or since the first run with these inputs and this operation. A call that the component does not accept
 * starts a count of such calls in a row instead. The next accepted run ends that count, so that an outage delays no later retry.
 */
export interface RunRecord
  extends Readonly<Pick<Spec, 'component' | 'seq' | 'phase' | 'operation' | 'asynchronous' | 'attempt'>> {
  readonly entry: EntryRef;
  /** Reasons of the last started run, at most `maxReasons`. */
  readonly reasons: readonly string[];
  /**
   * Digest of the inputs of the last run whose start the server did not undo. Undefined without one, or if the inputs changed during it.
   */
  readonly inputsDigest: string | undefined;
  /**
   * ID of the token with which the component may write. Undefined outside of phase Running. If the entry is deleted during a run with the
   * operation `reconcile`, it becomes undefined, and the component may use the token only to report.
   */
  readonly credentialId: string | undefined;
  /**
   * The token before the last refresh. It may write until `expiresAtMs`: the time of the refresh plus 10 minutes, the lifetime of a token.
   */
  readonly previousCredential: { readonly id: string; readonly expiresAtMs: number } | undefined;
  /** Start of the last started run; undefined before the first. */
  readonly startedAtMs: number | undefined;
  /**
   * Deadline of the current run; undefined without one. The true deadline may differ by up to `unstoredShare` (10 %) of the time that the
   * call or the last heartbeat granted, because the server does not store small changes. The next leader adds that share.
   */
  readonly deadlineMs: number | undefined;
  /** Time of the next run if no trigger starts one earlier; undefined during a run. */
  readonly nextAtMs: number | undefined;
  /** Why no run starts although the record is Idle; undefined if a run may start, and during a run. */
  readonly heldBy: Spec['heldBy'] | undefined;
  /** Undefined until a run has ended. */
  readonly lastOutcome: LastOutcome | undefined;
  /** Earlier runs that ended with an outcome, without the last started run; latest first, at most `maxHistory`. */
  readonly history: readonly PastRun[];
}

/** Outcome of the last run that ended. */
export interface LastOutcome extends Readonly<Pick<NonNullable<Spec['lastOutcome']>, 'seq' | 'outcome'>> {
  /** Code that the server gave the outcome, UpperCamelCase; undefined if it gave none. Components cannot give a code. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly endedAtMs: number;
  /** End of the first of the consecutive runs with this outcome, epoch milliseconds. */
  readonly sinceMs: number;
  readonly durationMs: number;
}

/** Whether the component did not accept the call of the run: it was busy, or the server could not reach it. */
export const wasNotAccepted = (reason: string | undefined): boolean => reason === 'Busy' || reason === 'Unreachable';

/** A run that ended before the last started run. */
export interface PastRun extends Readonly<Pick<Spec['history'][number], 'seq' | 'operation' | 'outcome'>> {
  readonly reason: string | undefined;
  readonly reasons: readonly string[];
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** A record with its resourceVersion, for compare-and-swap. */
export interface StoredRecord {
  readonly record: RunRecord;
  readonly resourceVersion: string;
}
