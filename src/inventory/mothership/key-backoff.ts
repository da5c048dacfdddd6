import { backoffMs } from '../../kit/backoff.ts';

export interface KeyBackoffOptions {
  /** Upper bound of the first delay, milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every delay, milliseconds. */
  readonly capMs: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
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
