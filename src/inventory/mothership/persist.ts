import { backoffMs } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { ApiError, TransportError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';

export interface PersistDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** What the API server mostly answers again, however often it is asked. */
const refusals = new Set([400, 403, 404, 405, 409, 413, 422]);
const backoff = { baseMs: 100, capMs: 10_000 };
/** Whoever asks for more, a proxy perhaps, would have a run that has ended stand as one that is on. */
const longestAskedMs = 30_000;
/** In all, outages in between or not: a webhook or a right may be missing for a moment only. */
const mostRefusals = 5;

/** Whether trying again may help: whatever else is thrown is a bug, and met again. */
export const mayPass = (error: unknown): boolean =>
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
      if (!mayPass(error)) throw error;
      if (error instanceof ApiError && refusals.has(error.code) && ++refused >= mostRefusals) throw error;
      const asked = error instanceof ApiError ? Math.min(error.retryAfterMs ?? 0, longestAskedMs) : 0;
      const delayMs = Math.max(asked, backoffMs({ ...backoff, attempt: failures, random }));
      log.warn(`${what} failed`, { error: describe(error), retryInMs: Math.round(delayMs) });
      await sleep(clock, delayMs, signal);
    }
  }
}
