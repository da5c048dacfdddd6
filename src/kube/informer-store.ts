import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, keyOf, type Resource } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { Listeners } from '../kit/listeners.ts';
import { unlessAborted } from '../kit/promises.ts';
import { RecentMap } from '../kit/recent-map.ts';
import type { KubeLog } from './log.ts';
import type { ReflectorSink } from './reflector.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';
import type { Projected, Store, StoreEvent, StoreFailure, StoreSpec } from './store.ts';
import { StoreIndexes } from './store-indexes.ts';

/** Remembered deletions, so that a late, older event does not restore an object. */
const MAX_TOMBSTONES = 1024;

/** Times are monotonic. */
interface Failure extends Omit<StoreFailure, 'forMs' | 'refusedForMs'> {
  /** When the first failure in a row occurred. */
  readonly sinceMs: number;
  /** When the server began to refuse. */
  readonly refusedSinceMs?: number | undefined;
}

/** A reflector writes it; all other code reads it. */
export class InformerStore<T extends Projected> implements Store<T>, ReflectorSink {
  readonly resource: Resource;
  readonly #spec: StoreSpec<T>;
  readonly #maxObjects: number;
  readonly #clock: Clock;
  readonly #log: KubeLog;
  readonly #indexes = new StoreIndexes<T>();
  readonly #listeners = new Set<(event: StoreEvent<T>) => void>();
  /** By key: the resourceVersion of the deletion. */
  readonly #tombstones = new RecentMap<string, string>(MAX_TOMBSTONES);
  readonly #closed = new AbortController();
  readonly #firstSync = Promise.withResolvers<void>();
  #objects = new Map<string, T>();
  #synced = false;
  /** When the server last answered or sent data; monotonic. */
  #aliveAtMs: number | undefined;
  /** The server has more objects than `maxObjects`. */
  #overflowed = false;
  #failure: Failure | undefined;
  readonly #refusalListeners = new Listeners<void>();

  constructor(spec: StoreSpec<T>, clock: Clock, log: KubeLog) {
    this.resource = spec.resource;
    this.#spec = spec;
    this.#maxObjects = spec.maxObjects ?? Number.POSITIVE_INFINITY;
    this.#clock = clock;
    this.#log = log;
    this.#indexes.add(spec.indexes ?? {}, []);
    // Without a listener, a rejection would end the process.
    this.#firstSync.promise.catch(() => undefined);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): Iterable<T> {
    return this.#objects.values();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#indexes.get(index, value);
  }

  get synced(): boolean {
    return this.#synced;
  }

  get ageMs(): number {
    return this.#aliveAtMs === undefined ? Number.POSITIVE_INFINITY : this.#clock.monotonic() - this.#aliveAtMs;
  }

  get failing(): StoreFailure | undefined {
    if (!this.#failure) return undefined;
    const { reason, sinceMs, refused, refusedSinceMs } = this.#failure;
    const nowMs = this.#clock.monotonic();
    const failing = { reason, forMs: nowMs - sinceMs };
    return refusedSinceMs === undefined ? failing : { ...failing, refused, refusedForMs: nowMs - refusedSinceMs };
  }

  onRefusal(listener: () => void): () => void {
    return this.#refusalListeners.add(listener);
  }

  subscribe(listener: (event: StoreEvent<T>) => void): () => void {
    for (const now of [...this.#objects.values()]) this.#notify(listener, { type: 'added', key: now.key, now });
    // A new function, so that subscribing one listener twice creates two subscriptions.
    const subscription = (event: StoreEvent<T>): void => listener(event);
    this.#listeners.add(subscription);
    return () => void this.#listeners.delete(subscription);
  }

  whenSynced(signal?: AbortSignal): Promise<void> {
    const { promise } = this.#firstSync;
    return signal === undefined || this.#synced ? promise : unlessAborted(promise, signal);
  }

  /** False, and none added, if a name belongs to a different function. */
  addIndexes(indexes: StoreSpec<T>['indexes'] = {}): boolean {
    if (!this.#indexes.accepts(indexes)) return false;
    this.#indexes.add(indexes, [...this.#objects.values()]);
    return true;
  }

  /** Removes the listeners. Before the first sync, `whenSynced` rejects with `StoreClosed`. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    const reason = new CodedError('StoreClosed', `the store of ${this.resource.plural} was closed`);
    this.#listeners.clear();
    this.#refusalListeners.clear();
    this.#closed.abort(reason);
    this.#firstSync.reject(reason);
  }

  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  alive(): void {
    this.#aliveAtMs = this.#clock.monotonic();
    // After an overflow, only a list that is short enough ends the failure.
    if (!this.#overflowed) this.#setFailure(undefined);
  }

  failed(reason: string, refused?: number): void {
    const nowMs = this.#clock.monotonic();
    const {
      sinceMs = nowMs,
      refused: before,
      refusedSinceMs = refused === undefined ? undefined : nowMs,
    } = this.#failure ?? {};
    // Keep an earlier refusal: only a successful answer shows that the permission is back.
    this.#setFailure({ reason, sinceMs, refused: refused ?? before, refusedSinceMs });
  }

  #setFailure(failure: Failure | undefined): void {
    const before = this.#failure?.refused;
    this.#failure = failure;
    if (before !== failure?.refused) this.#refusalListeners.notify();
  }

  beginList() {
    const listed = new Map<string, T>();
    return {
      add: (items: readonly KubeObject[]): void => {
        for (const item of items) {
          const object = this.#projected(item);
          if (object) listed.set(keyOf(item.metadata), object);
        }
        if (listed.size > this.#maxObjects) this.#overflow();
      },
      restart: (): void => listed.clear(),
      commit: (): void => {
        const isRelist = this.#synced;
        this.#replaceAll(listed);
        if (isRelist) this.#spec.onRelist?.();
      },
    };
  }

  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject, resourceVersion: string): void {
    if (this.signal.aborted) return;
    const key = keyOf(object.metadata);
    const before = this.#objects.get(key);
    if (this.#isOutdated(type, key, before, resourceVersion)) return;
    const now = type === 'DELETED' ? undefined : this.#projected(object);
    if (now && !before && this.#objects.size >= this.#maxObjects) this.#overflow();
    if (type === 'DELETED') this.#tombstones.set(key, resourceVersion);
    else this.#tombstones.delete(key);
    this.#set(key, before, now);
  }

  absent(): void {
    this.#replaceAll(new Map());
  }

  #overflow(): never {
    this.#overflowed = true;
    throw new CodedError('TooManyObjects', `the server has more than ${this.#maxObjects} ${this.resource.plural}`);
  }

  #replaceAll(listed: Map<string, T>): void {
    if (this.signal.aborted) return;
    this.#overflowed = false;
    this.#setFailure(undefined);
    for (const [key, before] of [...this.#objects]) if (!listed.has(key)) this.#set(key, before, undefined, true);
    for (const [key, now] of listed) {
      const before = this.#objects.get(key);
      if (!before || !this.#isSame(before, now)) this.#set(key, before, now);
    }
    this.#tombstones.clear();
    this.#synced = true;
    this.#firstSync.resolve();
  }

  #isSame(before: T, now: T): boolean {
    if (before.resourceVersion !== now.resourceVersion || before.uid !== now.uid) return false;
    return !this.#spec.followsSchema || isDeepStrictEqual(before, now);
  }

  /** Events may be out of order, but the resourceVersion of one object only grows. */
  #isOutdated(type: string, key: string, before: T | undefined, resourceVersion: string): boolean {
    const newest = before?.resourceVersion ?? this.#tombstones.get(key);
    if (newest === undefined) return false;
    if (type === 'DELETED') return isOlder(resourceVersion, newest);
    const order = compareResourceVersions(resourceVersion, newest);
    return order !== undefined && order <= 0;
  }

  #set(key: string, before: T | undefined, now: T | undefined, inferred = false): void {
    if (!before && !now) return;
    if (before && now && before.uid !== now.uid) {
      // The object was deleted and created again between two events.
      this.#set(key, before, undefined);
      this.#set(key, undefined, now);
      return;
    }
    if (now) this.#objects.set(key, now);
    else this.#objects.delete(key);
    this.#indexes.replace(before, now);
    const event = eventOf(key, before, now, inferred);
    if (event) for (const listener of [...this.#listeners]) this.#notify(listener, event);
  }

  #projected(object: KubeObject): T | undefined {
    try {
      return this.#spec.project(object);
    } catch (error) {
      this.#log.error(
        'the server failed to read an object, and treats it as absent; report this error to the maintainers',
        {
          resource: this.resource.plural,
          key: keyOf(object.metadata),
          error: describe(error),
        },
      );
      return undefined;
    }
  }

  #notify(listener: (event: StoreEvent<T>) => void, event: StoreEvent<T>): void {
    try {
      listener(event);
    } catch (error) {
      this.#log.error(
        'the server failed to handle a change of an object; the watch continues; report this error to the maintainers',
        {
          resource: this.resource.plural,
          key: event.key,
          error: describe(error),
        },
      );
    }
  }
}

function eventOf<T>(
  key: string,
  before: T | undefined,
  now: T | undefined,
  inferred: boolean,
): StoreEvent<T> | undefined {
  if (before && now) return { type: 'updated', key, before, now };
  if (now) return { type: 'added', key, now };
  if (!before) return undefined;
  return inferred ? { type: 'deleted', key, before, inferred } : { type: 'deleted', key, before };
}
