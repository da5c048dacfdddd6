import { maxMessage } from '../../api/inventory/contract/outcome.ts';
import { askedDelayMs, backoffMs } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { ApiError, TransportError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { RunStore, Swap } from '../ports.ts';

export interface PersistDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** Status codes that a retry rarely changes. */
const refusals = new Set([400, 403, 404, 405, 409, 413, 422]);
const backoff = { baseMs: 100, capMs: 10_000 };
/** Cap on Retry-After; otherwise a finished run would stay recorded as running. */
const maxRetryAfterMs = 30_000;
/** Maximum number of rejections in total: a webhook or permission may be missing only briefly. */
const maxRefusals = 5;

/** Whether a retry may succeed. Any other error is a bug that a retry would meet again. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof ApiError || error instanceof TransportError || error instanceof CodedError;

/**
 * Retries a write that must not be lost while the API server is unavailable or overloaded. Rejects with the reason of `signal`; with the
 * last answer after several rejections by the API server; and immediately with an error that is not retryable.
 */
export async function persist<T>(
  { clock, random, log }: PersistDeps,
  what: string,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  let refused = 0;
  for (let failures = 0; ; failures++) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (!isRetryable(error)) throw error;
      if (error instanceof ApiError && refusals.has(error.code) && ++refused >= maxRefusals) throw error;
      const asked = Math.min(askedDelayMs(error), maxRetryAfterMs);
      const delayMs = Math.max(asked, backoffMs({ ...backoff, attempt: failures, random }));
      log.warn(`${what} failed`, { error: describe(error), retryInMs: Math.round(delayMs) });
      await sleep(clock, delayMs, signal);
    }
  }
}

/** `refused`: the API server rejects the record permanently. */
type StoreResult = Swap | { readonly kind: 'refused'; readonly message: string };

/** Status codes for invalid content. */
const contentCodes = new Set([400, 413, 422]);

/** Stores run records, and retries while the API server is unavailable. */
export class Records {
  readonly #runs: RunStore;
  readonly #deps: PersistDeps;

  constructor(runs: RunStore, deps: PersistDeps) {
    this.#runs = runs;
    this.#deps = deps;
  }

  /**
   * Stores a record. If the API server rejects the details of the outcome, stores it without them. Rejects with the reason of `signal`, and
   * with an error that is not retryable.
   */
  async store(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<StoreResult> {
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

/** The record without the component's message and missing inputs, which may cause the rejection; undefined if there are none. */
function withoutDetails(record: RunRecord, refusal: ApiError): RunRecord | undefined {
  const { lastOutcome } = record;
  if (!lastOutcome || (lastOutcome.message === undefined && lastOutcome.missing.length === 0)) return undefined;
  const message = `the API server rejected the details of the outcome: ${describe(refusal)}`.slice(0, maxMessage);
  return { ...record, lastOutcome: { ...lastOutcome, reason: 'NotStored', message, missing: [] } };
}
