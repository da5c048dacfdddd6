import type { MissingInput } from '../../api/inventory/fields.ts';
import type { Operation, OutcomeName } from '../../api/inventory/reconcile-run.ts';
import type { EntryRef } from '../entry.ts';

/** The stored record of a key: what survives a restart. Instants are epoch milliseconds, kept to the second or finer. */
export interface RunRecord {
  readonly entry: EntryRef;
  readonly component: string;
  readonly seq: number;
  readonly phase: 'Idle' | 'Running' | 'Applying';
  readonly operation: Operation;
  readonly reasons: readonly string[];
  readonly inputsDigest: string | undefined;
  /** What the fence lets write now; undefined unless Running. */
  readonly credentialId: string | undefined;
  readonly previousCredential: { readonly id: string; readonly expiresAtMs: number } | undefined;
  readonly startedAtMs: number | undefined;
  readonly asynchronous: boolean;
  readonly leaseUntilMs: number | undefined;
  readonly attempt: number;
  readonly nextAtMs: number | undefined;
  readonly lastOutcome: LastOutcome | undefined;
  readonly history: readonly PastRun[];
}

export interface LastOutcome {
  readonly seq: number;
  readonly outcome: OutcomeName;
  /** Stable, UpperCamelCase; undefined where the outcome says it all. */
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly missing: readonly MissingInput[];
  readonly endedAtMs: number;
  readonly durationMs: number;
}

export interface PastRun {
  readonly seq: number;
  readonly operation: Operation;
  readonly reasons: readonly string[];
  readonly outcome: OutcomeName;
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** A record as it lies in the store: what a write has to be compared with. */
export interface StoredRecord {
  readonly record: RunRecord;
  readonly resourceVersion: string;
}
