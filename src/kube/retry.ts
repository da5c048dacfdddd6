import { askedDelayMs, backoffMs } from '../kit/backoff.ts';
import { ApiError, isUnreachable, TransportError } from './errors.ts';

const MAX_TRIES = 4;
const BASE_MS = 250;
const CAP_MS = 5_000;

export interface FailedTry {
  readonly error: unknown;
  /** True when doing it twice cannot hurt: GET, reviews. */
  readonly idempotent: boolean;
  /** Failures before this one. */
  readonly attempt: number;
  readonly random: () => number;
}

/** Milliseconds to wait before the same request goes out again, or undefined when it must not. */
export function retryDelayMs({ error, idempotent, attempt, random }: FailedTry): number | undefined {
  if (attempt + 1 >= MAX_TRIES || !(idempotent ? isUnreachable(error) : neverActed(error))) return undefined;
  return askedDelayMs(error) + backoffMs({ baseMs: BASE_MS, capMs: CAP_MS, attempt, random });
}

/** A write is sent again only when the server said, or the connection shows, that it did nothing with the first. */
function neverActed(error: unknown): boolean {
  if (error instanceof ApiError) return (error.code === 429 || error.code === 503) && error.retryAfterMs !== undefined;
  return error instanceof TransportError && error.notSent;
}
