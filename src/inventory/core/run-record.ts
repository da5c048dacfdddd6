import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import type { EntryRef } from '../entry.ts';

type Spec = ReconcileRun['spec'];

/**
 * The stored record of one component of one entry. Instants are epoch milliseconds. `attempt` sets
 * the backoff: it counts Retry outcomes since the last Done or change of inputs or operation. Calls
 * that the component does not accept have a count of their own, so that an outage delays no later
 * retry.
 */
export interface RunRecord
  extends Readonly<Pick<Spec, 'component' | 'seq' | 'phase' | 'operation' | 'asynchronous' | 'attempt'>> {
  readonly entry: EntryRef;
  /** At most `maxReasons`. */
  readonly reasons: readonly string[];
  /** Inputs of the last run that was not undone; undefined if they changed during it. */
  readonly inputsDigest: string | undefined;
  /**
   * The token that may write, in phase Running. Removed when the entry is deleted during a
   * `reconcile`: the token may then only report.
   */
  readonly credentialId: string | undefined;
  /** The token before the last refresh, which may write for one more token lifetime. */
  readonly previousCredential: { readonly id: string; readonly expiresAtMs: number } | undefined;
  readonly startedAtMs: number | undefined;
  /** Less than `unstoredShare` off the true one; the next leader adds that. */
  readonly deadlineMs: number | undefined;
  /** Next run if no trigger starts one earlier. */
  readonly nextAtMs: number | undefined;
  /** Why no run starts although the record is Idle. */
  readonly heldBy: Spec['heldBy'] | undefined;
  readonly lastOutcome: LastOutcome | undefined;
  /** Earlier runs with an outcome, latest first, at most `maxHistory`. */
  readonly history: readonly PastRun[];
}

export interface LastOutcome extends Readonly<Pick<NonNullable<Spec['lastOutcome']>, 'seq' | 'outcome'>> {
  /** Code of the server, UpperCamelCase. Components cannot give one. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly endedAtMs: number;
  /** End of the first of the consecutive runs with this outcome. */
  readonly sinceMs: number;
  readonly durationMs: number;
}

/** Whether the component was busy, or the server could not reach it. */
export const wasNotAccepted = (reason: string | undefined): boolean => reason === 'Busy' || reason === 'Unreachable';

export interface PastRun extends Readonly<Pick<Spec['history'][number], 'seq' | 'operation' | 'outcome'>> {
  readonly reason: string | undefined;
  readonly reasons: readonly string[];
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** For compare-and-swap. */
export interface StoredRecord {
  readonly record: RunRecord;
  readonly resourceVersion: string;
}
