import { allowDeletesAnnotation } from '../../api/binding/names.ts';

/**
 * Holds back deletes of copies when 20 or more are due within a minute and no watch showed that
 * their originals were deleted, as after a restore of an old backup. A restart counts from zero.
 */
export class DeleteBreaker {
  /** By key: when its delete was first requested. */
  readonly #wanted = new Map<string, number>();
  /** Released by `allow`, and not deleted yet. */
  readonly #allowed = new Set<string>();
  #deleteTimesMs: number[] = [];
  #tripped = false;

  /** Milliseconds until the delete may go; Infinity: held back until `allow`, or all withdraw. */
  request(key: string, nowMs: number): number {
    if (this.#allowed.has(key)) return 0;
    const firstRequestMs = this.#wanted.get(key) ?? nowMs;
    this.#wanted.set(key, firstRequestMs);
    this.#deleteTimesMs = this.#deleteTimesMs.filter((at) => nowMs - at < WINDOW_MS);
    if (this.#wanted.size + this.#deleteTimesMs.length >= TRIP_COUNT) this.#tripped = true;
    if (this.#tripped) return Number.POSITIVE_INFINITY;
    return Math.max(0, firstRequestMs + GATHER_MS - nowMs);
  }

  /** A delete that `allow` released does not count towards the limit. */
  recordDeleted(key: string, nowMs: number): void {
    if (this.#allowed.delete(key)) return;
    this.#deleteTimesMs.push(nowMs);
    this.withdraw(key);
  }

  /** The original is back, or the copy is gone. The last withdrawal ends the hold. */
  withdraw(key: string): void {
    this.#allowed.delete(key);
    if (this.#wanted.delete(key) && this.#wanted.size === 0) this.#tripped = false;
  }

  /** Returns the keys of the deletes that were held back. */
  allow(): string[] {
    if (!this.#tripped) return [];
    const keys = [...this.#wanted.keys()];
    for (const key of keys) this.#allowed.add(key);
    this.#wanted.clear();
    this.#deleteTimesMs = [];
    this.#tripped = false;
    return keys;
  }

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

/** Why deletes are held back, and what to do. */
export const heldDeletes = (copies: number, binding: string): string =>
  `${copies} copies have no original, and no watch showed that the originals were deleted; the server keeps such copies if it would delete ${TRIP_COUNT} or more within a minute; restore the originals, or delete the copies: kubectl annotate apiservicebinding ${binding} --overwrite ${allowDeletesAnnotation}="$(date)"`;

/** Deletes within the window, including those that wait. */
const TRIP_COUNT = 20;
const WINDOW_MS = 60_000;
/** Deletes with the same cause are counted before the first one goes. */
const GATHER_MS = 1_000;
