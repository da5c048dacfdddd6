import { ApiError } from '../../kube/errors.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { ComponentKey } from '../key.ts';
import type { RunStore, Swap } from '../ports/run-store.ts';
import { type PersistDeps, persist } from './persist.ts';

/** Stores what runs came to, however long that takes. */
export class Records {
  readonly #runs: RunStore;
  readonly #deps: PersistDeps;

  constructor(runs: RunStore, deps: PersistDeps) {
    this.#runs = runs;
    this.#deps = deps;
  }

  /** A record that the API server refuses for good is read again, as if somebody else had written it. */
  async store(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<Swap> {
    try {
      return await persist(this.#deps, 'storing a record', signal, () => this.#runs.swap(next, base, signal));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const key: ComponentKey = { entryUid: next.entry.uid, component: next.component };
      const stored = await persist(this.#deps, 'reading a record', signal, () => this.#runs.load(key, signal));
      return { kind: 'conflict', stored };
    }
  }
}
