/** Uniform in [0, 1), as Math.random. */
type Random = () => number;

interface Bounds {
  /** Upper bound of the first delay. */
  readonly baseMs: number;
  /** Upper bound of every delay. */
  readonly capMs: number;
}

interface Attempt extends Bounds {
  /** 0 for the first delay. */
  readonly attempt: number;
}

interface Jitter {
  /** `full`: from 0. `half`: only the upper half, if a delay near 0 would be a hot loop. */
  readonly jitter?: 'full' | 'half';
  readonly random: Random;
}

/** For a resource that no other process waits for. */
interface NoJitter {
  readonly jitter: 'none';
}

/**
 * Exponential, up to `min(cap, base * 2^attempt)`, with jitter, so that clients that failed
 * together do not retry together. The caller must also wait for `retryAfterMsOf(error)`.
 */
export function backoffMs(options: Attempt & (Jitter | NoJitter)): number {
  const { baseMs, capMs, attempt } = options;
  const boundMs = Math.min(capMs, baseMs * 2 ** attempt);
  if (options.jitter === 'none') return boundMs;
  const { jitter = 'full', random } = options;
  return jitter === 'full' ? random() * boundMs : boundMs / 2 + random() * (boundMs / 2);
}

/** What the server asked the caller to wait, or 0. Errors of calls carry it as `retryAfterMs`. */
export function retryAfterMsOf(error: unknown): number {
  if (!(error instanceof Error) || !('retryAfterMs' in error)) return 0;
  return typeof error.retryAfterMs === 'number' && Number.isFinite(error.retryAfterMs) ? error.retryAfterMs : 0;
}

/** `period`, changed by up to `share` of it; for work at intervals. */
export const jittered = (period: number, share: number, random: Random): number =>
  period * (1 - share + 2 * share * random());
