/**
 * Holds back deletes of copies whose consumer object nobody saw being deleted, when they are many at once: that is what a consumer
 * looks like that was restored from an old backup, or lost its data. Times are monotonic milliseconds.
 */
export class DeleteBreaker {
  /** Copies to be deleted, and since when. */
  readonly #wanted = new Map<string, number>();
  readonly #allowed = new Set<string>();
  #deletedAt: number[] = [];
  #tripped = false;

  /** Asks for the delete of the copy of `key`: 0 to go ahead, else the milliseconds until to ask again; Infinity while it is held back. */
  request(key: string, nowMs: number): number {
    if (this.#allowed.has(key)) return 0;
    const since = this.#wanted.get(key) ?? nowMs;
    this.#wanted.set(key, since);
    this.#deletedAt = this.#deletedAt.filter((at) => nowMs - at < WINDOW_MS);
    if (this.#wanted.size + this.#deletedAt.length >= MAX_DELETES) this.#tripped = true;
    if (this.#tripped) return Number.POSITIVE_INFINITY;
    // Those that vanished with it have been asked for by then.
    return Math.max(0, since + GATHER_MS - nowMs);
  }

  /** The copy was deleted. */
  recordDeleted(key: string, nowMs: number): void {
    if (this.#allowed.delete(key)) return;
    this.#deletedAt.push(nowMs);
    this.withdraw(key);
  }

  /** The copy need not be deleted any more: its consumer object is back, or it went by itself. The last one of all closes the breaker. */
  withdraw(key: string): void {
    this.#allowed.delete(key);
    if (this.#wanted.delete(key) && this.#wanted.size === 0) this.#tripped = false;
  }

  /** Lets go what is held back now; returns the keys. What comes later is counted anew. */
  allow(): string[] {
    if (!this.#tripped) return [];
    const keys = [...this.#wanted.keys()];
    for (const key of keys) this.#allowed.add(key);
    this.#wanted.clear();
    this.#deletedAt = [];
    this.#tripped = false;
    return keys;
  }

  /** How many deletes are held back. */
  get held(): number {
    return this.#tripped ? this.#wanted.size : 0;
  }

  clear(): void {
    this.#wanted.clear();
    this.#allowed.clear();
    this.#deletedAt = [];
    this.#tripped = false;
  }
}

/** So many within the window, those that wait included, are too many. */
const MAX_DELETES = 20;
const WINDOW_MS = 60_000;
const GATHER_MS = 1_000;
