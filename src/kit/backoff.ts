export interface BackoffOptions {
  /** Upper bound of the first delay, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every delay, milliseconds. */
  readonly capMs: number;
  /** Failures before this one: 0 gives the first delay. */
  readonly attempt: number;
  /** Uniform in [0, 1), as Math.random. */
  readonly random: () => number;
}

/**
 * Milliseconds to wait before the next attempt: exponential with full jitter, uniform between 0 and `min(cap, base * 2^attempt)`,
 * so that clients which failed together do not come back together. A server's Retry-After is a lower bound of its own:
 * the caller waits `Math.max(retryAfterMs, backoffMs(…))`.
 */
export function backoffMs({ baseMs, capMs, attempt, random }: BackoffOptions): number {
  return random() * Math.min(capMs, baseMs * 2 ** attempt);
}
