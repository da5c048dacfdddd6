import { maxEntryBytes } from '../../api/inventory/names.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import type { Registration } from '../registration.ts';
import type { EntryReaders } from './digest.ts';
import type { Memory, Wake } from './memory.ts';
import type { RunRecord, StoredRecord } from './run-record.ts';
import type { Lane, Trigger } from './triggers.ts';

/** All that `plan` decides from: one component of one entry, now. */
export interface Facts {
  readonly entry: Entry;
  readonly readers: EntryReaders;
  readonly registration: Registration;
  /** The truth about runs; undefined before the first one, and after the last teardown. */
  readonly stored: StoredRecord | undefined;
  /** Of the inputs in `entry`, see `digestInputs`. */
  readonly digest: string;
  readonly mayRun: MayRun;
  /** The watches of the managed cluster are unhealthy. */
  readonly isUnwatched: boolean;
  readonly memory: Memory;
  readonly nowMs: number;
  /** For deadlines, spacing, and livelock detection. */
  readonly monotonicMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The operation that may start, or why none may. */
export type MayRun = { readonly may: 'reconcile' | 'delete' } | { readonly may: 'no'; readonly why: NotRunReason };

/** Why a component may not run; also `reason` in the entry's status. */
export type NotRunReason =
  | 'Suspended'
  | 'Disabled'
  | 'NotApplicable'
  | 'TooLarge'
  | 'RegistrationRefused'
  | 'Abandoned';

/** By mode and labels. A disabled component applies, too. */
export const isApplicable = (entry: Entry, registration: Registration): boolean =>
  registration.modes.includes(entry.mode) && registration.selects(entry.labels);

/** `refused`: the condition Accepted is False. Ignores `Limits`. */
export function mayRun(
  entry: Entry,
  registration: Registration,
  { refused, recorded }: { readonly refused: boolean; readonly recorded: boolean },
): MayRun {
  const { name } = registration;
  if (isAbandoned(entry, name)) return { may: 'no', why: 'Abandoned' };
  if (entry.deleting) {
    if (!recorded) return { may: 'no', why: 'NotApplicable' };
    if (refused) return { may: 'no', why: 'RegistrationRefused' };
    return entry.suspended ? { may: 'no', why: 'Suspended' } : { may: 'delete' };
  }
  if (!isApplicable(entry, registration)) return { may: 'no', why: 'NotApplicable' };
  if (entry.disabled.has(name)) return { may: 'no', why: 'Disabled' };
  if (refused) return { may: 'no', why: 'RegistrationRefused' };
  if (entry.bytes > maxEntryBytes) return { may: 'no', why: 'TooLarge' };
  return entry.suspended ? { may: 'no', why: 'Suspended' } : { may: 'reconcile' };
}

/** What one reconcile does next. The record is written by compare-and-swap. */
export type Step =
  /** Nothing until `at`, monotonic milliseconds, or the next change. */
  | { readonly do: 'rest'; readonly at?: number; readonly lane?: Lane }
  /** Get a slot and a token, store the record with the token's ID. */
  | {
      readonly do: 'start';
      readonly operation: RunRecord['operation'];
      readonly triggers: readonly Trigger[];
      readonly lane: Lane;
    }
  | { readonly do: 'call' }
  /** Store why no run starts, or withdraw the credential of a run. */
  | { readonly do: 'store'; readonly next: RunRecord }
  | ({ readonly do: 'extend' } & Extension)
  /** Write outputs, one component of an entry at a time. */
  | { readonly do: 'apply'; readonly outputs: Readonly<Record<string, unknown>> }
  /** `wake`: see `Memory`. `warning`: the component waits for inputs that it has. */
  | {
      readonly do: 'end';
      readonly next: RunRecord;
      readonly wake: Omit<Wake, 'version'>;
      readonly warning?: string;
    }
  /** The run did not happen: store that, and start again with the same triggers. */
  | { readonly do: 'repeat'; readonly next: RunRecord; readonly wake: Omit<Wake, 'version'> }
  /** Remove the outputs, then the record. `ended`: the run that just ended, to report. */
  | { readonly do: 'retire'; readonly ended: RunRecord | undefined };

/** `next`: undefined if the change is too small to store. */
export interface Extension {
  readonly next: RunRecord | undefined;
  readonly deadlineAt: number;
  readonly heartbeatTimeoutMs: number;
}

export type StepOf<Kind extends Step['do']> = Extract<Step, { readonly do: Kind }>;
