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

/** What the API server mostly answers again, however often it is asked. */
const refusals = new Set([400, 403, 404, 405, 409, 413, 422]);
const backoff = { baseMs: 100, capMs: 10_000 };
/** Whoever asks for more, a proxy perhaps, would have a run that has ended stand as one that is on. */
const maxRetryAfterMs = 30_000;
/** In all, outages in between or not: a webhook or a right may be missing for a moment only. */
const maxRefusals = 5;

/** Whether trying again may help: whatever else is thrown is a bug, and met again. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof ApiError || error instanceof TransportError || error instanceof CodedError;

/**
 * Does what must not be lost, again and again while the API server is away or overloaded. Rejects with the reason of `signal`, or with the
 * last answer once the API server has refused it several times, or at once with what is neither an answer nor an outage.
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

/** `refused`: the API server does not take it, however often it is asked. */
type StoreResult = Swap | { readonly kind: 'refused'; readonly message: string };

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

/** What a component says of itself may be what is refused; undefined when it has said nothing. */
function withoutDetails(record: RunRecord, refusal: ApiError): RunRecord | undefined {
  const { lastOutcome } = record;
  if (!lastOutcome || (lastOutcome.message === undefined && lastOutcome.missing.length === 0)) return undefined;
  const message = `what the component said could not be stored: ${describe(refusal)}`.slice(0, maxMessage);
  return { ...record, lastOutcome: { ...lastOutcome, reason: 'NotStored', message, missing: [] } };
}
