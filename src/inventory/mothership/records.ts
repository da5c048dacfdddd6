import { maxMessage } from '../../api/inventory/contract/outcome.ts';
import { describe } from '../../kit/errors.ts';
import { ApiError } from '../../kube/errors.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { RunStore, Swap } from '../ports.ts';
import { type PersistDeps, persist } from './persist.ts';

/** `refused`: the API server does not take it, however often it is asked. */
export type Storing = Swap | { readonly kind: 'refused'; readonly message: string };

/** Of a request whose content is at fault. */
const contentCodes = new Set([400, 413, 422]);

/** Stores what runs came to, however long the API server is away. */
export class Records {
  readonly #runs: RunStore;
  readonly #deps: PersistDeps;

  constructor(runs: RunStore, deps: PersistDeps) {
    this.#runs = runs;
    this.#deps = deps;
  }

  /**
   * An outcome whose details are refused is stored without them. Rejects with the reason of `signal`, and with what is neither an answer
   * nor an outage.
   */
  async store(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<Storing> {
    const storing = await this.#try(next, base, signal);
    if (!(storing instanceof ApiError)) return storing;
    const bare = contentCodes.has(storing.code) ? withoutDetails(next, storing) : undefined;
    const again = bare ? await this.#try(bare, base, signal) : storing;
    return again instanceof ApiError ? { kind: 'refused', message: describe(again) } : again;
  }

  async #try(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<Swap | ApiError> {
    try {
      return await persist(this.#deps, 'storing a record', signal, () => this.#runs.swap(next, base, signal));
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }
}

/** What a component says of itself may be what is refused; undefined when it has said nothing. */
function withoutDetails(record: RunRecord, refusal: ApiError): RunRecord | undefined {
  const { lastOutcome } = record;
  if (!lastOutcome || (lastOutcome.message === undefined && lastOutcome.missing.length === 0)) return undefined;
  const message = `what the component said could not be stored: ${describe(refusal)}`.slice(0, maxMessage);
  return { ...record, lastOutcome: { ...lastOutcome, reason: 'NotStored', message, missing: [] } };
}
