/** Uniform in [0, 1), as Math.random. */
type Random = () => number;

interface Bounds {
  /** Upper bound of the first delay, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every delay, milliseconds. */
  readonly capMs: number;
}

interface Attempt extends Bounds {
  /** Failures before this one: 0 gives the first delay. */
  readonly attempt: number;
}

interface Jitter {
  /** `full`: anything from 0 to the upper bound. `half`: its upper half, where a delay near 0 would be a hot loop. Default `full`. */
  readonly jitter?: 'full' | 'half';
  readonly random: Random;
}

/** The upper bound itself, where one process waits for something of its own and there is no crowd to spread. */
interface NoJitter {
  readonly jitter: 'none';
}

/**
 * Milliseconds to wait before the next attempt: exponential with jitter, up to `min(cap, base * 2^attempt)`, so that clients which
 * failed together do not come back together. A server's Retry-After is a lower bound of its own: the caller waits
 * `Math.max(askedDelayMs(error), backoffMs(…))`.
 */
export function backoffMs(options: Attempt & (Jitter | NoJitter)): number {
  const { baseMs, capMs, attempt } = options;
  const mostMs = Math.min(capMs, baseMs * 2 ** attempt);
  if (options.jitter === 'none') return mostMs;
  const { jitter = 'full', random } = options;
  return jitter === 'full' ? random() * mostMs : mostMs / 2 + random() * (mostMs / 2);
}

/** Milliseconds that a server asked its caller to wait for; 0 when it did not. Errors of calls carry them as `retryAfterMs`. */
export function askedDelayMs(error: unknown): number {
  if (!(error instanceof Error) || !('retryAfterMs' in error)) return 0;
  return typeof error.retryAfterMs === 'number' && Number.isFinite(error.retryAfterMs) ? error.retryAfterMs : 0;
}

/** `period`, shorter or longer by up to `share` of it: for what is done at intervals. */
export const jittered = (period: number, share: number, random: Random): number =>
  period * (1 - share + 2 * share * random());

interface KeyBackoffOptions extends Bounds {
  readonly random: Random;
}

/** Failures in a row of one sort, by key, and how long to wait after them. What does not fail costs nothing. */
export class KeyBackoff<Key extends WeakKey> {
  readonly #options: KeyBackoffOptions;
  readonly #failures = new WeakMap<Key, number>();

  constructor(options: KeyBackoffOptions) {
    this.#options = options;
  }

  failed(key: Key): void {
    this.#failures.set(key, this.count(key) + 1);
  }

  /** In a row, until now. */
  count(key: Key): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Milliseconds to wait before the next attempt: 0 when the last one did not fail. Another number each time. */
  delayMs(key: Key): number {
    const failures = this.count(key);
    return failures === 0 ? 0 : backoffMs({ ...this.#options, attempt: failures - 1 });
  }

  /** What failed has succeeded. */
  forget(key: Key): void {
    this.#failures.delete(key);
  }
}
