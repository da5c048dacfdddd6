import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import type { EntryRef } from '../entry.ts';

type Spec = ReconcileRun['spec'];

/** The stored record of a key. Instants are epoch milliseconds. */
export interface RunRecord
  extends Readonly<Pick<Spec, 'component' | 'seq' | 'phase' | 'operation' | 'asynchronous' | 'attempt'>> {
  readonly entry: EntryRef;
  /** Reasons of the last started run, at most `maxReasons`. */
  readonly reasons: readonly string[];
  /** Digest of the inputs of the last run that was not rolled back; undefined if there is none, or if they changed during that run. */
  readonly inputsDigest: string | undefined;
  /** ID of the token that may write; undefined unless the phase is Running, and after the deletion of the entry revoked it. */
  readonly credentialId: string | undefined;
  /** The token before the last refresh; it may write until `expiresAtMs`, the maximum lifetime of a token after the refresh. */
  readonly previousCredential: { readonly id: string; readonly expiresAtMs: number } | undefined;
  /** Start of the last started run. */
  readonly startedAtMs: number | undefined;
  /** Deadline of the current run as last stored. A heartbeat that moves it only a little is not stored. */
  readonly leaseUntilMs: number | undefined;
  /** Time of the next run if no trigger starts one earlier; undefined during a run. */
  readonly nextAtMs: number | undefined;
  readonly lastOutcome: LastOutcome | undefined;
  /** Runs before the last started one that ended with an outcome, latest first, at most `maxHistory`. */
  readonly history: readonly PastRun[];
}

/** Outcome of the last run that ended. */
export interface LastOutcome extends Readonly<Pick<NonNullable<Spec['lastOutcome']>, 'seq' | 'outcome'>> {
  /** Stable, UpperCamelCase; undefined if the outcome needs no reason. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly endedAtMs: number;
  readonly durationMs: number;
}

/** A run in the history. */
export interface PastRun extends Readonly<Pick<Spec['history'][number], 'seq' | 'operation' | 'outcome'>> {
  readonly reasons: readonly string[];
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** A record with its resourceVersion, for compare-and-swap. */
export interface StoredRecord {
  readonly record: RunRecord;
  readonly resourceVersion: string;
}
