import { backoffMs, retryAfterMsOf } from '../kit/backoff.ts';
import { ApiError, isUnreachable, TransportError } from './errors.ts';

const MAX_TRIES = 4;
const BASE_MS = 250;
const CAP_MS = 5_000;

export interface FailedTry {
  readonly error: unknown;
  /** GET and reviews. */
  readonly idempotent: boolean;
  readonly attempt: number;
  /** Uniform in [0, 1), for the backoff. */
  readonly random: () => number;
}

/** Retry-After or the backoff, as in client-go: their sum would delay the end of a grant. */
export function retryDelayMs({ error, idempotent, attempt, random }: FailedTry): number | undefined {
  if (attempt + 1 >= MAX_TRIES || !(idempotent ? isUnreachable(error) : neverActed(error))) return undefined;
  return Math.max(retryAfterMsOf(error), backoffMs({ baseMs: BASE_MS, capMs: CAP_MS, attempt, random }));
}

/** Only if the server provably did not act is a write retried. */
function neverActed(error: unknown): boolean {
  if (error instanceof ApiError) return (error.code === 429 || error.code === 503) && error.retryAfterMs !== undefined;
  return error instanceof TransportError && error.notSent;
}
