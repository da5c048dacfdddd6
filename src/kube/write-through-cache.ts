import type { Clock } from '../kit/clock.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';
import type { StoreEvent } from './store.ts';

interface Versioned {
  readonly resourceVersion: string;
}

export interface WriteThroughCacheOptions<T extends Versioned> {
  readonly watched: (key: string) => T | undefined;
  readonly uidOf: (object: T) => string;
  /** How long `get` returns an answer that the watch does not show. Default `answerTrustMs`. */
  readonly trustMs?: number;
  readonly clock: Clock;
}

/** A watch normally lags less. After that, the cache trusts the watch instead of an answer. */
export const answerTrustMs = 10_000;

/** `untilMs`: when the cache stops trusting the answer; monotonic. */
interface Answer<T> {
  readonly object: T;
  readonly untilMs: number;
}

interface PendingCalls {
  count: number;
  /** uids that the watch reported as deleted meanwhile. */
  readonly deleted: Set<string>;
  /** `forget` or `clear` ran meanwhile. */
  forgotten: boolean;
}

/**
 * Reads that include this process's own writes: the object of the watch, or of a later answer.
 * Otherwise a reconcile between a write and its watch event would repeat the write. Keys are the
 * caller's, such as a uid; it reports watch events to `observe`, or deleted keys to `forget`.
 */
export class WriteThroughCache<T extends Versioned> {
  readonly #options: WriteThroughCacheOptions<T>;
  readonly #answers = new Map<string, Answer<T>>();
  readonly #deleting = new Map<string, { readonly uid: string; readonly untilMs: number }>();
  /** uids of deleted objects, which the watch may still show. */
  readonly #deleted = new Map<string, string>();
  readonly #pending = new Map<string, PendingCalls>();

  constructor(options: WriteThroughCacheOptions<T>) {
    this.#options = options;
  }

  get(key: string): T | undefined {
    const watched = this.#watched(key);
    const answer = this.#answers.get(key);
    if (!answer) return watched;
    if (this.#isTrusted(answer) && !supersedes(watched, answer.object)) return answer.object;
    this.#answers.delete(key);
    return watched;
  }

  /**
   * `call` reads or writes, and resolves to the current object, which is then cached. Not after a
   * deletion in the watch, `forget`, or `clear` meanwhile, or if a later one is known.
   */
  async call<Result extends T | undefined>(key: string, call: () => Promise<Result>): Promise<Result> {
    const pending = this.#pending.get(key) ?? { count: 0, deleted: new Set(), forgotten: false };
    this.#pending.set(key, pending);
    pending.count++;
    try {
      const object = await call();
      if (object && !pending.forgotten && !pending.deleted.has(this.#options.uidOf(object))) this.#keep(key, object);
      return object;
    } finally {
      pending.count--;
      if (pending.count === 0 && this.#pending.get(key) === pending) this.#pending.delete(key);
    }
  }

  /** The API server accepted a delete, which may still wait for finalizers. */
  deleting(key: string, uid: string): void {
    this.#deleting.set(key, { uid, untilMs: this.#untilMs() });
  }

  /** `deleting` was less than `trustMs` ago, and the watch has not shown the deletion. */
  isDeleting(key: string, uid: string): boolean {
    const deleting = this.#deleting.get(key);
    return deleting?.uid === uid && this.#isTrusted(deleting);
  }

  deleted(key: string, uid: string): void {
    const watched = this.#options.watched(key);
    this.#answers.delete(key);
    this.#deleting.delete(key);
    if (watched && this.#options.uidOf(watched) === uid) this.#deleted.set(key, uid);
  }

  /** The watch does not show an answer or an accepted delete yet. */
  isAhead(key: string): boolean {
    for (const entries of [this.#answers, this.#deleting]) {
      const entry = entries.get(key);
      if (entry && !this.#isTrusted(entry)) entries.delete(key);
    }
    return this.#answers.has(key) || this.#deleting.has(key);
  }

  observe(event: StoreEvent<T>): void {
    const { key } = event;
    const answer = this.#answers.get(key);
    if (event.type !== 'deleted') {
      if (answer && supersedes(event.now, answer.object)) this.#answers.delete(key);
      return;
    }
    const { uidOf } = this.#options;
    const uid = uidOf(event.before);
    this.#pending.get(key)?.deleted.add(uid);
    if (answer && uidOf(answer.object) === uid) this.#answers.delete(key);
    if (this.#deleting.get(key)?.uid === uid) this.#deleting.delete(key);
    if (this.#deleted.get(key) === uid) this.#deleted.delete(key);
  }

  /** Trusts the watch again, except for deleted objects. Drops answers of calls in flight. */
  forget(key: string): void {
    this.#answers.delete(key);
    this.#deleting.delete(key);
    this.#forgetPending(key);
  }

  /** Trusts the watch again for every key. Drops answers of calls in flight. */
  clear(): void {
    this.#answers.clear();
    this.#deleting.clear();
    this.#deleted.clear();
    for (const key of [...this.#pending.keys()]) this.#forgetPending(key);
  }

  #keep(key: string, object: T): void {
    if (supersedes(this.#watched(key), object)) return;
    // Of two calls in flight, the later answer may have the older object.
    const earlier = this.#answers.get(key);
    if (earlier && this.#isTrusted(earlier) && isOlder(object.resourceVersion, earlier.object.resourceVersion)) return;
    this.#answers.set(key, { object, untilMs: this.#untilMs() });
  }

  #forgetPending(key: string): void {
    const pending = this.#pending.get(key);
    if (pending) pending.forgotten = true;
    this.#pending.delete(key);
  }

  #watched(key: string): T | undefined {
    const watched = this.#options.watched(key);
    return watched && this.#options.uidOf(watched) === this.#deleted.get(key) ? undefined : watched;
  }

  #isTrusted({ untilMs }: { readonly untilMs: number }): boolean {
    return untilMs > this.#options.clock.monotonic();
  }

  #untilMs(): number {
    return this.#options.clock.monotonic() + (this.#options.trustMs ?? answerTrustMs);
  }
}

/** Two versions without an order: trust the watch. */
function supersedes(watched: Versioned | undefined, answer: Versioned): boolean {
  if (!watched) return false;
  const order = compareResourceVersions(watched.resourceVersion, answer.resourceVersion);
  return order === undefined || order >= 0;
}
