/**
 * Holds back deletes of copies when there are many at once and no watch showed the deletion of their consumer objects. A consumer that was
 * restored from an old backup, or that lost its data, looks like that. Times are monotonic milliseconds.
 */
export class DeleteBreaker {
  /** By key of the copy to delete: the time of the first request. */
  readonly #wanted = new Map<string, number>();
  readonly #allowed = new Set<string>();
  #deleteTimesMs: number[] = [];
  #tripped = false;

  /**
   * Requests the delete of the copy of `key`. Returns 0 if the delete may go, otherwise the milliseconds until the next request; Infinity
   * while the delete is held back.
   */
  request(key: string, nowMs: number): number {
    if (this.#allowed.has(key)) return 0;
    const since = this.#wanted.get(key) ?? nowMs;
    this.#wanted.set(key, since);
    this.#deleteTimesMs = this.#deleteTimesMs.filter((at) => nowMs - at < WINDOW_MS);
    if (this.#wanted.size + this.#deleteTimesMs.length >= MAX_DELETES) this.#tripped = true;
    if (this.#tripped) return Number.POSITIVE_INFINITY;
    // The wait lets deletes that belong together arrive before the first one goes.
    return Math.max(0, since + GATHER_MS - nowMs);
  }

  /** Records that the copy was deleted. */
  recordDeleted(key: string, nowMs: number): void {
    if (this.#allowed.delete(key)) return;
    this.#deleteTimesMs.push(nowMs);
    this.withdraw(key);
  }

  /** Withdraws a request, because the consumer object is back or the copy no longer exists. The last withdrawal closes the breaker. */
  withdraw(key: string): void {
    this.#allowed.delete(key);
    if (this.#wanted.delete(key) && this.#wanted.size === 0) this.#tripped = false;
  }

  /** Allows the deletes that are held back and returns their keys. Later requests are counted from zero. */
  allow(): string[] {
    if (!this.#tripped) return [];
    const keys = [...this.#wanted.keys()];
    for (const key of keys) this.#allowed.add(key);
    this.#wanted.clear();
    this.#deleteTimesMs = [];
    this.#tripped = false;
    return keys;
  }

  /** Number of deletes that are held back. */
  get held(): number {
    return this.#tripped ? this.#wanted.size : 0;
  }

  clear(): void {
    this.#wanted.clear();
    this.#allowed.clear();
    this.#deleteTimesMs = [];
    this.#tripped = false;
  }
}

/** Most deletes within the window, including those that wait. */
const MAX_DELETES = 20;
const WINDOW_MS = 60_000;
const GATHER_MS = 1_000;
