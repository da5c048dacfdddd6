import { maxMessage } from '../../api/inventory/contract/outcome.ts';
import { backoffMs, retryAfterMsOf } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { ApiError, TransportError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { RunStore, Swap } from '../ports.ts';

/** Dependencies of `withRetries`. */
export interface RetryDeps {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

/** Status codes of rejections: answers that a retry rarely changes. */
const rejectionCodes = new Set([400, 403, 404, 405, 409, 413, 422]);
/** Backoff between attempts, milliseconds. */
const backoff = { baseMs: 100, capMs: 10_000 };
/** Maximum Retry-After that the server follows, milliseconds, so that a finished run does not stay recorded as running for long. */
const maxRetryAfterMs = 30_000;
/** Maximum number of rejections of one write: a webhook or a permission may be missing only briefly. */
const maxRejections = 5;

/** Whether a retry may succeed. Any other error is a bug, and a retry would fail again. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof ApiError || error instanceof TransportError || error instanceof CodedError;

/**
 * Repeats a read or write until it succeeds, without a limit for outages. Rejects with the reason of `signal`, and with the ApiError after
 * five rejections (`rejectionCodes`). An error that is not retryable rejects at once. `what` names the work in logs.
 */
export async function withRetries<T>(
  { clock, random, log }: RetryDeps,
  what: string,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  let rejections = 0;
  for (let failures = 0; ; failures++) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (!isRetryable(error)) throw error;
      if (error instanceof ApiError && rejectionCodes.has(error.code) && ++rejections >= maxRejections) throw error;
      const retryAfterMs = Math.min(retryAfterMsOf(error), maxRetryAfterMs);
      const delayMs = Math.max(retryAfterMs, backoffMs({ ...backoff, attempt: failures, random }));
      log.warn(`${what} failed; the server retries`, { error: describe(error), retryInMs: Math.round(delayMs) });
      await sleep(clock, delayMs, signal);
    }
  }
}

/** `rejected`: the API server still rejects the record after all retries. */
type StoreResult = Swap | { readonly kind: 'rejected'; readonly message: string };

/** Status codes for invalid content. */
const contentCodes = new Set([400, 413, 422]);

/** Stores run records, and retries while the API server is unavailable. */
export class RecordWriter {
  readonly #runs: RunStore;
  readonly #deps: RetryDeps;

  constructor(runs: RunStore, deps: RetryDeps) {
    this.#runs = runs;
    this.#deps = deps;
  }

  /**
   * Stores a record. If the API server rejects its content, stores it without the message and the missing inputs of the outcome, and with
   * the reason `NotStored`. Resolves to `rejected` if that is not possible or is rejected, and after other rejections. Rejects with the
   * reason of `signal`, and with an error that is not retryable.
   */
  async store(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<StoreResult> {
    const result = await this.#swap(next, base, signal);
    if (!(result instanceof ApiError)) return result;
    const shortened = contentCodes.has(result.code) ? withoutDetails(next, result) : undefined;
    const lastResult = shortened ? await this.#swap(shortened, base, signal) : result;
    return lastResult instanceof ApiError ? { kind: 'rejected', message: describe(lastResult) } : lastResult;
  }

  async #swap(next: RunRecord, base: StoredRecord, signal: AbortSignal): Promise<Swap | ApiError> {
    const { entry, component } = next;
    const log = this.#deps.log.child({ entry: `${entry.namespace}/${entry.name}`, component });
    try {
      return await withRetries({ ...this.#deps, log }, 'storing a record', signal, () =>
        this.#runs.swap(next, base, signal),
      );
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }
}

/** The record without the message and the missing inputs of its last outcome; undefined if it has none. */
function withoutDetails(record: RunRecord, rejection: ApiError): RunRecord | undefined {
  const { lastOutcome } = record;
  if (!lastOutcome || (lastOutcome.message === undefined && lastOutcome.missing.length === 0)) return undefined;
  const message = `the API server rejected the details of the outcome: ${describe(rejection)}`.slice(0, maxMessage);
  return { ...record, lastOutcome: { ...lastOutcome, reason: 'NotStored', message, missing: [] } };
}
