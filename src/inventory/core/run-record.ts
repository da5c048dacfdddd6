import type { MissingInput } from '../../api/inventory/fields.ts';
import type { ReconcileRun } from '../../api/inventory/reconcile-run.ts';
import type { EntryRef } from '../entry.ts';

type Spec = ReconcileRun['spec'];

/** The stored record of a key. It survives a restart. Instants are epoch milliseconds, stored with a precision of one second or better. */
export interface RunRecord
  extends Readonly<Pick<Spec, 'component' | 'seq' | 'phase' | 'operation' | 'asynchronous' | 'attempt'>> {
  readonly entry: EntryRef;
  readonly reasons: readonly string[];
  readonly inputsDigest: string | undefined;
  /** The token with this ID may write; undefined unless the phase is Running. */
  readonly credentialId: string | undefined;
  readonly previousCredential: { readonly id: string; readonly expiresAtMs: number } | undefined;
  readonly startedAtMs: number | undefined;
  readonly leaseUntilMs: number | undefined;
  readonly nextAtMs: number | undefined;
  readonly lastOutcome: LastOutcome | undefined;
  readonly history: readonly PastRun[];
}

export interface LastOutcome extends Readonly<Pick<NonNullable<Spec['lastOutcome']>, 'seq' | 'outcome'>> {
  /** Stable, UpperCamelCase; undefined if the outcome needs no reason. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly endedAtMs: number;
  readonly durationMs: number;
}

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
