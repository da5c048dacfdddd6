import type { KubeObject, Resource } from '../api/object.ts';

/**
 * `Store.ageMs` from which a store is stale, milliseconds. A healthy quiet watch receives a bookmark each minute, and one that receives
 * nothing for 75 s is opened anew (`runWatchSession`).
 */
export const STALE_MS = 90_000;

/** The fields that a store keeps of every object. `StoreSpec.project` adds those that the readers of the store use. */
export interface Projected {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** A change of one object. `before` and `now` are projected. */
export type StoreEvent<T> =
  | { readonly type: 'added'; readonly key: string; readonly now: T }
  | { readonly type: 'updated'; readonly key: string; readonly before: T; readonly now: T }
  /** `inferred`: no watch event showed the deletion, for example because the object was missing from a list after a reconnect. */
  | { readonly type: 'deleted'; readonly key: string; readonly before: T; readonly inferred?: true };

/** What a store lists and watches, and what it keeps of each object. */
export interface StoreSpec<T extends Projected> {
  readonly resource: Resource;
  /** One namespace; absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Picks the used fields, never managedFields. Returns undefined to omit the object. If it throws, the store logs the error and omits the
   * object.
   */
  readonly project: (object: KubeObject) => T | undefined;
  /** Named indexes: each maps an object to the values by which it can be found. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /**
   * Maximum number of objects, for untrusted servers. If the server has more, the store keeps its earlier content and is failing
   * (`Store.failing`). It relists every few minutes, until a list is short enough. Default: no limit.
   */
  readonly maxObjects?: number;
  /** True for kinds that may not be installed (Argo Rollout): the store counts as synced while the kind is absent. */
  readonly optional?: boolean;
  /**
   * True for custom kinds whose schema may change. A watch prunes objects by the schema at its start, and the API server ends the watch
   * soon after a change of the schema. So if a watch ends early, the store relists, and an object with other content and the same
   * resourceVersion counts as changed.
   */
  readonly followsSchema?: boolean;
  /**
   * Called after each complete list except the first, and after the first list of an optional kind that was absent. If several readers
   * share the store, only the function of the first reader is called.
   */
  readonly onRelist?: () => void;
}

/** A live, projected copy of one list-watch. Reads never block. Listeners get events in order; an error in a listener affects no other. */
export interface Store<T extends Projected> {
  readonly resource: Resource;
  get(key: string): T | undefined;
  list(): Iterable<T>;
  /** The objects with `value` in the index. Throws RangeError if the store has no such index. */
  byIndex(index: string, value: string): readonly T[];
  /** Calls back for every existing object, then for each change. Returns a function that unsubscribes. */
  subscribe(listener: (event: StoreEvent<T>) => void): () => void;
  /** True once the first list is complete, or the optional kind is known to be absent. */
  readonly synced: boolean;
  /** Resolves when synced; rejects if the store closes or `signal` aborts first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  /**
   * Milliseconds since the server last answered a list or watch without an error, or sent data; with `WatchOptions.probe`, also since it
   * answered a review. Infinity before the first such answer.
   */
  readonly ageMs: number;
  /** The current failure; undefined once the server answers again, or, after `maxObjects` was exceeded, once a list is short enough. */
  readonly failing?: StoreFailure | undefined;
  /** Calls `listener` when `failing.refused` has changed. Returns a function that unsubscribes. */
  onRefusal(listener: () => void): () => void;
}

/** Why a store is out of date. */
export interface StoreFailure {
  /** The error of the last failed list or watch. */
  readonly reason: string;
  /** Milliseconds since the first failure in a row. */
  readonly forMs: number;
  /** The status code, 401 or 403, if the server has listed the objects before but now refuses to list or watch them. */
  readonly refused?: number | undefined;
  /** Milliseconds since the server began to refuse the list or watch; absent if `refused` is absent. */
  readonly refusedForMs?: number;
}

/** A reference-counted handle; the watch ends when the last handle is released. */
export interface StoreHandle<T extends Projected> {
  readonly store: Store<T>;
  /** Idempotent. Listeners stay subscribed while other handles remain. */
  release(): void;
}
