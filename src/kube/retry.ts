import { backoffMs, retryAfterMsOf } from '../kit/backoff.ts';
import { ApiError, isUnreachable, TransportError } from './errors.ts';

/** Maximum number of attempts of one call. */
const MAX_TRIES = 4;
/** Bounds of the backoff between two tries, milliseconds. */
const BASE_MS = 250;
const CAP_MS = 5_000;

/** A failed attempt of a call: input of `retryDelayMs`. */
export interface FailedTry {
  readonly error: unknown;
  /** Whether the call is idempotent: GET and reviews. */
  readonly idempotent: boolean;
  /** Number of earlier failures. */
  readonly attempt: number;
  /** Uniform in [0, 1), for the backoff. */
  readonly random: () => number;
}

/**
 * Milliseconds to wait before the request is retried; undefined if it must not be retried. Like client-go, it waits for Retry-After or for
 * the backoff, whichever is longer: their sum would delay the end of a grant.
 */
export function retryDelayMs({ error, idempotent, attempt, random }: FailedTry): number | undefined {
  if (attempt + 1 >= MAX_TRIES || !(idempotent ? isUnreachable(error) : neverActed(error))) return undefined;
  return Math.max(retryAfterMsOf(error), backoffMs({ baseMs: BASE_MS, capMs: CAP_MS, attempt, random }));
}

/** Whether the answer or the connection proves that the server did not act on the attempt. Only then, a write is retried. */
function neverActed(error: unknown): boolean {
  if (error instanceof ApiError) return (error.code === 429 || error.code === 503) && error.retryAfterMs !== undefined;
  return error instanceof TransportError && error.notSent;
}
