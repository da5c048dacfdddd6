/** Returns numbers that are uniform in [0, 1), as Math.random does. */
type Random = () => number;

/** Bounds of the delays. */
interface Bounds {
  /** Upper bound of the first delay, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every delay, milliseconds. */
  readonly capMs: number;
}

/** The attempt that the delay precedes. */
interface Attempt extends Bounds {
  /** Number of delays before this one; 0 for the first delay. */
  readonly attempt: number;
}

interface Jitter {
  /** `full`: from 0 to the upper bound. `half`: only the upper half, if a delay near 0 would be a hot loop. Default `full`. */
  readonly jitter?: 'full' | 'half';
  readonly random: Random;
}

/** `none`: the delay is the upper bound. For a resource that no other process waits for. */
interface NoJitter {
  readonly jitter: 'none';
}

/**
 * Milliseconds to wait before the next attempt: exponential, up to `min(cap, base * 2^attempt)`, with jitter, so that clients that
 * failed together do not retry together. It ignores Retry-After: the caller must wait at least `retryAfterMsOf(error)`, too.
 */
export function backoffMs(options: Attempt & (Jitter | NoJitter)): number {
  const { baseMs, capMs, attempt } = options;
  const boundMs = Math.min(capMs, baseMs * 2 ** attempt);
  if (options.jitter === 'none') return boundMs;
  const { jitter = 'full', random } = options;
  return jitter === 'full' ? random() * boundMs : boundMs / 2 + random() * (boundMs / 2);
}

/** Milliseconds that the server asked the caller to wait; 0 if it did not ask. Errors of calls carry them as `retryAfterMs`. */
export function retryAfterMsOf(error: unknown): number {
  if (!(error instanceof Error) || !('retryAfterMs' in error)) return 0;
  return typeof error.retryAfterMs === 'number' && Number.isFinite(error.retryAfterMs) ? error.retryAfterMs : 0;
}

/** `period`, shortened or lengthened by up to `share` of it; for work at intervals. */
export const jittered = (period: number, share: number, random: Random): number =>
  period * (1 - share + 2 * share * random());

interface KeyBackoffOptions extends Bounds {
  readonly random: Random;
}

/** Counts consecutive failures by key, in a WeakMap, and computes the backoff. */
export class KeyBackoff<Key extends WeakKey> {
  readonly #options: KeyBackoffOptions;
  readonly #failures = new WeakMap<Key, number>();

  constructor(options: KeyBackoffOptions) {
    this.#options = options;
  }

  /** Records a failure. */
  failed(key: Key): void {
    this.#failures.set(key, this.count(key) + 1);
  }

  /** The number of consecutive failures. */
  count(key: Key): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Milliseconds to wait before the next attempt: 0 if no attempt failed since the last success. Jitter changes the number at each call. */
  delayMs(key: Key): number {
    const failures = this.count(key);
    return failures === 0 ? 0 : backoffMs({ ...this.#options, attempt: failures - 1 });
  }

  /** Records a success. */
  forget(key: Key): void {
    this.#failures.delete(key);
  }
}
