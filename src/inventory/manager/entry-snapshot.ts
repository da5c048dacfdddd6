import type { MissingInput } from '../../api/inventory/fields.ts';
import { forceAnnotation, maxEntryBytes } from '../../api/inventory/names.ts';
import { allHold, digestInputs, type EntryReaders } from '../core/digest.ts';
import type { Inputs, KeyEvent } from '../core/key-state.ts';
import type { StoredRecord } from '../core/run-record.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import type { InventoryStore, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { RegistrationLister } from './registrations.ts';

interface SnapshotReaderDeps {
  readonly entries: Pick<InventoryStore, 'find'>;
  readonly runs: Pick<RunStore, 'find'>;
  readonly registrations: RegistrationLister;
}

/** A version of an entry. `readers`: for missing inputs that want `noReaders`. */
export interface EntrySnapshot {
  readonly entry: Entry;
  readonly readers: EntryReaders;
}

export interface ComponentSnapshot extends EntrySnapshot {
  readonly registration: Registration;
  readonly inputs: Inputs;
}

/** Creates an event from the snapshot when the key handles it. */
export type EventFactory = (snapshot: ComponentSnapshot) => KeyEvent;

/** Reads from the watches; run records also from writes of this process. */
export class SnapshotReader {
  readonly #deps: SnapshotReaderDeps;

  constructor(deps: SnapshotReaderDeps) {
    this.#deps = deps;
  }

  snapshot(entryUid: string): EntrySnapshot | undefined {
    const entry = this.#deps.entries.find(entryUid);
    return entry && { entry, readers: this.#readersOf(entry) };
  }

  inputs({ entry, readers }: EntrySnapshot, registration: Registration, stored: StoredRecord | undefined): Inputs {
    const { registrations } = this.#deps;
    const { name } = registration;
    const force = entry.annotations[forceAnnotation(name)];
    return {
      digest: digestInputs(entry.content, registration, force),
      resourceVersion: entry.resourceVersion,
      arrived: allHold(stored?.record.lastOutcome?.missing ?? [], entry.content, readers),
      mayRun: mayRun(entry, registration, {
        refused: registrations.problem(name) !== undefined,
        recorded: stored !== undefined,
      }),
    };
  }

  holds({ entry, readers }: EntrySnapshot, missing: readonly MissingInput[]): boolean {
    return allHold(missing, entry.content, readers);
  }

  #readersOf(entry: Entry): EntryReaders {
    const { registrations, runs } = this.#deps;
    const found = [];
    for (const registration of registrations.all()) {
      const { name, reads } = registration;
      const counts = entry.deleting
        ? runs.find({ entryUid: entry.ref.uid, component: name }) !== undefined
        : isApplicable(entry, registration);
      if (counts) found.push({ component: name, reads });
    }
    return found;
  }
}

/** By mode and labels. A disabled component applies, too. */
export function isApplicable(entry: Entry, registration: Registration): boolean {
  return registration.modes.includes(entry.mode) && registration.selects(entry.labels);
}

interface Circumstances {
  /** The condition Accepted is False. */
  readonly refused: boolean;
  readonly recorded: boolean;
}

/** The operation that may start, or why none may. Ignores `Limits`. */
export function mayRun(
  entry: Entry,
  registration: Registration,
  { refused, recorded }: Circumstances,
): Inputs['mayRun'] {
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
