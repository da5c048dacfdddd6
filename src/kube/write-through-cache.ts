import type { KubeObject } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';
import type { StoreEvent } from './store.ts';

interface Versioned {
  readonly resourceVersion: string;
}

/** The watch of a cache, and how long the cache trusts the answers to this process's writes. */
export interface WriteThroughCacheOptions<T extends Versioned> {
  /** The object as the watch last showed it; undefined if the watch shows no such object. */
  readonly watched: (key: string) => T | undefined;
  readonly uidOf: (object: T) => string;
  /**
   * How long `get` returns the answer to a write while the watch does not show it, milliseconds; may be Infinity. Default
   * `answerTrustMs`, 10 s.
   */
  readonly trustMs?: number;
  readonly clock: Clock;
}

/** How long a watch normally lags behind at most, milliseconds; after that, the cache trusts the watch instead of an answer. */
export const answerTrustMs = 10_000;

/** The smallest object for a WriteThroughCache, for callers that only need to know whether a read is stale. */
export interface ObjectVersion extends Versioned {
  readonly uid: string;
}

/** The uid and resourceVersion of the object. A field that the object lacks is empty. */
export const versionOf = ({ metadata: { uid = '', resourceVersion = '' } }: KubeObject): ObjectVersion => ({
  uid,
  resourceVersion,
});

/** The object in the answer to a call. `untilMs`: when the cache stops trusting it, milliseconds on the monotonic clock. */
interface Answer<T> {
  readonly object: T;
  readonly untilMs: number;
}

/** The calls in flight for one key. */
interface PendingCalls {
  count: number;
  /** uids of objects that the watch reported as deleted meanwhile. */
  readonly deleted: Set<string>;
  /** Whether `forget` or `clear` ran meanwhile. */
  forgotten: boolean;
}

/**
 * Reads that include this process's own writes: the object as the watch shows it, or as the API server answered a later call. Without the
 * cache, a reconcile between a write and its watch event would repeat the write, or compare with an older object.
 *
 * The caller chooses the keys, such as `namespace/name` or a uid. It reports each watch event to `observe`, or deleted keys to
 * `forget`.
 */
export class WriteThroughCache<T extends Versioned> {
  readonly #options: WriteThroughCacheOptions<T>;
  readonly #answers = new Map<string, Answer<T>>();
  readonly #deleting = new Map<string, { readonly uid: string; readonly untilMs: number }>();
  /** uids of objects that are deleted, even if the watch still shows them. */
  readonly #deleted = new Map<string, string>();
  readonly #pending = new Map<string, PendingCalls>();

  constructor(options: WriteThroughCacheOptions<T>) {
    this.#options = options;
  }

  /** The newest known object of the key; undefined if it does not exist. */
  get(key: string): T | undefined {
    const watched = this.#watched(key);
    const answer = this.#answers.get(key);
    if (!answer) return watched;
    if (this.#isTrusted(answer) && !supersedes(watched, answer.object)) return answer.object;
    this.#answers.delete(key);
    return watched;
  }

  /** Whether a newer resourceVersion of the key is known. A resourceVersion that is not a number counts as not newer. */
  isStale(key: string, object: Versioned): boolean {
    const newest = this.get(key);
    return newest !== undefined && isOlder(object.resourceVersion, newest.resourceVersion);
  }

  /**
   * Runs `call`, a read or a write that resolves to the current object. Caches the object, unless a later resourceVersion is known. If
   * `call` resolves to undefined, the cache stays as it is. Does not cache the object if the watch reports its deletion, or `forget` or
   * `clear` runs, during the call.
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

  /** Records that the API server accepted a delete of the object, which may still wait for its finalizers. */
  deleting(key: string, uid: string): void {
    this.#deleting.set(key, { uid, untilMs: this.#untilMs() });
  }

  /** Whether `deleting` was recorded for the object less than `trustMs` ago, and the watch has not confirmed the deletion. */
  isDeleting(key: string, uid: string): boolean {
    const deleting = this.#deleting.get(key);
    return deleting?.uid === uid && this.#isTrusted(deleting);
  }

  /** Records that the object no longer exists. */
  deleted(key: string, uid: string): void {
    const watched = this.#options.watched(key);
    this.#answers.delete(key);
    this.#deleting.delete(key);
    if (watched && this.#options.uidOf(watched) === uid) this.#deleted.set(key, uid);
  }

  /** Whether the cache has an answer or an accepted delete that the watch does not show yet. */
  isAhead(key: string): boolean {
    for (const entries of [this.#answers, this.#deleting]) {
      const entry = entries.get(key);
      if (entry && !this.#isTrusted(entry)) entries.delete(key);
    }
    return this.#answers.has(key) || this.#deleting.has(key);
  }

  /** Records an event of the watch. */
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

  /** Trusts the watch again for the key, except for deleted objects. Ignores the answers of calls in flight. */
  forget(key: string): void {
    this.#answers.delete(key);
    this.#deleting.delete(key);
    this.#forgetPending(key);
  }

  /** Trusts the watch again for every key. Ignores the answers of calls in flight. */
  clear(): void {
    this.#answers.clear();
    this.#deleting.clear();
    this.#deleted.clear();
    for (const key of [...this.#pending.keys()]) this.#forgetPending(key);
  }

  #keep(key: string, object: T): void {
    if (supersedes(this.#watched(key), object)) return;
    // If two calls are in flight, the answer that arrives later may have the older object.
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

/** Whether the watch shows the answer or a later resourceVersion. If the two have no order, trusts the watch. */
function supersedes(watched: Versioned | undefined, answer: Versioned): boolean {
  if (!watched) return false;
  const order = compareResourceVersions(watched.resourceVersion, answer.resourceVersion);
  return order === undefined || order >= 0;
}
