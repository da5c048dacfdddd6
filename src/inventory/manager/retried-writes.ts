import { backoffMs, retryAfterMsOf } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { ApiError, TransportError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RunRecord, StoredRecord } from '../core/run-record.ts';
import type { RunStore, Swap } from '../ports.ts';

export interface RetryDeps {
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

/** Answers that a retry rarely changes. */
const rejectionCodes = new Set([400, 403, 404, 405, 409, 413, 422]);
const backoff = { baseMs: 100, capMs: 10_000 };
/** Longer waits would keep a finished run recorded as running. */
const maxRetryAfterMs = 30_000;
/** Of one write: a webhook or a permission may be missing only briefly. */
const maxRejections = 5;

/** Any other error is a bug, and would repeat. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof ApiError || error instanceof TransportError || error instanceof CodedError;

/**
 * Repeats `attempt` through outages of any length. Rejects with the reason of `signal`, the
 * ApiError after five rejections (`rejectionCodes`), or an error that is not retryable. `what`: for
 * logs.
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

/** The API server still rejects the record after all retries. */
type StoreResult = Swap | { readonly kind: 'rejected'; readonly message: string };

/** Rejects as `withRetries` does, but resolves to `rejected` for an ApiError. */
export async function storeRecord(
  { runs, ...deps }: RetryDeps & { readonly runs: RunStore },
  next: RunRecord,
  base: StoredRecord,
  signal: AbortSignal,
): Promise<StoreResult> {
  const { entry, component } = next;
  const log = deps.log.child({ entry: `${entry.namespace}/${entry.name}`, component });
  try {
    return await withRetries({ ...deps, log }, 'storing a record', signal, () => runs.swap(next, base, signal));
  } catch (error) {
    if (error instanceof ApiError) return { kind: 'rejected', message: describe(error) };
    throw error;
  }
}
