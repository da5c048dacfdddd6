import { allowDeletesAnnotation } from '../../api/binding/names.ts';

/**
 * Holds back deletes of copies when there are 20 or more within a minute and no watch showed the deletion of their originals. A cluster
 * that was restored from an old backup, or that lost its data, causes such deletes. Times are monotonic milliseconds. After a restart it
 * counts from zero, and the deletes are requested again.
 */
export class DeleteBreaker {
  /** By key: the time of the first request to delete its copy. */
  readonly #wanted = new Map<string, number>();
  /** Keys whose deletes `allow` released, and whose copies are not deleted yet. */
  readonly #allowed = new Set<string>();
  /** Times of the deletes within the window. */
  #deleteTimesMs: number[] = [];
  /** Whether the breaker holds back all requested deletes. */
  #tripped = false;

  /**
   * Requests the delete of the copy of `key`. Returns 0 if the delete may be sent, otherwise the milliseconds after which to request it
   * again. Infinity: the breaker holds the delete back until `allow`, or until every request has been withdrawn.
   */
  request(key: string, nowMs: number): number {
    if (this.#allowed.has(key)) return 0;
    const firstRequestMs = this.#wanted.get(key) ?? nowMs;
    this.#wanted.set(key, firstRequestMs);
    this.#deleteTimesMs = this.#deleteTimesMs.filter((at) => nowMs - at < WINDOW_MS);
    if (this.#wanted.size + this.#deleteTimesMs.length >= TRIP_COUNT) this.#tripped = true;
    if (this.#tripped) return Number.POSITIVE_INFINITY;
    return Math.max(0, firstRequestMs + GATHER_MS - nowMs);
  }

  /** Records that the copy was deleted, and withdraws its request. A delete that `allow` released does not count towards the limit. */
  recordDeleted(key: string, nowMs: number): void {
    if (this.#allowed.delete(key)) return;
    this.#deleteTimesMs.push(nowMs);
    this.withdraw(key);
  }

  /**
   * Withdraws a request, because the original is back or the copy no longer exists. When the last request is withdrawn, the breaker no
   * longer holds deletes back.
   */
  withdraw(key: string): void {
    this.#allowed.delete(key);
    if (this.#wanted.delete(key) && this.#wanted.size === 0) this.#tripped = false;
  }

  /** Allows the deletes that are held back, and returns their keys. Then counts from zero. If none is held back, does nothing. */
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

  /** Forgets all requests, releases, and deletes. */
  clear(): void {
    this.#wanted.clear();
    this.#allowed.clear();
    this.#deleteTimesMs = [];
    this.#tripped = false;
  }
}

/** The part of a message about deletes that are held back: why, and what to do. `binding`: name of the APIServiceBinding. */
export const heldDeletesAdvice = (binding: string): string =>
  `the server keeps such copies if it would delete ${TRIP_COUNT} or more within a minute; restore the originals, or delete the copies: kubectl annotate apiservicebinding ${binding} --overwrite ${allowDeletesAnnotation}="$(date)"`;

/** Number of deletes within the window at which the breaker trips, including those that wait. */
const TRIP_COUNT = 20;
/** Length of the window, milliseconds. */
const WINDOW_MS = 60_000;
/** Wait before a delete, milliseconds, so that deletes with the same cause are counted before the first one is sent. */
const GATHER_MS = 1_000;
