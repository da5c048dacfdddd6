import type { KubeObject, Resource } from '../api/object.ts';

/** A quiet watch receives a bookmark each minute, and is opened anew after 75 s of silence. */
export const STALE_MS = 90_000;

/** `StoreSpec.project` adds what the readers of the store use. */
export interface Projected {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** `before` and `now` are projected. */
export type StoreEvent<T> =
  | { readonly type: 'added'; readonly key: string; readonly now: T }
  | { readonly type: 'updated'; readonly key: string; readonly before: T; readonly now: T }
  /** `inferred`: no event showed it; the object was missing from a list after a reconnect, say. */
  | { readonly type: 'deleted'; readonly key: string; readonly before: T; readonly inferred?: true };

export interface StoreSpec<T extends Projected> {
  readonly resource: Resource;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Picks the used fields, never managedFields. May omit the object; a throw omits and logs it. */
  readonly project: (object: KubeObject) => T | undefined;
  /** Each maps an object to the values by which it can be found. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /**
   * For untrusted servers: with more, the store keeps its content and is `failing`. Default: none.
   */
  readonly maxObjects?: number;
  /** The kind may not be installed (Argo Rollout); the store then counts as synced. */
  readonly optional?: boolean;
  /**
   * For custom kinds: the API server prunes by the schema at the start of a watch, and ends it
   * after a change. So after an early end, the store relists and compares contents.
   */
  readonly followsSchema?: boolean;
  /** After each complete list but the first. Only the first reader's function is called. */
  readonly onRelist?: () => void;
}

/** A live, projected copy of one list-watch. Reads never block; listeners get events in order. */
export interface Store<T extends Projected> {
  readonly resource: Resource;
  get(key: string): T | undefined;
  list(): Iterable<T>;
  /** Throws RangeError if the store has no such index. */
  byIndex(index: string, value: string): readonly T[];
  /** First every existing object, then each change. Returns a function that unsubscribes. */
  subscribe(listener: (event: StoreEvent<T>) => void): () => void;
  /** The first list is complete, or the optional kind is absent. */
  readonly synced: boolean;
  /** Rejects if the store closes or `signal` aborts first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** Since the server's last data, answer without an error, or review by the probe; or Infinity. */
  readonly ageMs: number;
  /** Until the server answers; after `maxObjects`, until a list is short enough. */
  readonly failing?: StoreFailure | undefined;
  /** For changes of `failing.refused`. Returns a function that unsubscribes. */
  onRefusal(listener: () => void): () => void;
}

export interface StoreFailure {
  /** The error of the last failed list or watch. */
  readonly reason: string;
  /** Since the first failure in a row. */
  readonly forMs: number;
  /** 401 or 403, if the server listed the objects before and now refuses. */
  readonly refused?: number | undefined;
  /** Since the server began to refuse. */
  readonly refusedForMs?: number;
}

/** Reference-counted; the watch ends when the last handle is released. */
export interface StoreHandle<T extends Projected> {
  readonly store: Store<T>;
  /** Idempotent. Listeners stay subscribed while other handles remain. */
  release(): void;
}
