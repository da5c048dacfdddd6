import type { KubeObject, Resource } from '../api/object.ts';

/** What a store keeps of an object: always these, plus what the projection picks. */
export interface Projected {
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export type StoreEvent<T> =
  | { readonly type: 'added'; readonly key: string; readonly now: T }
  | { readonly type: 'updated'; readonly key: string; readonly before: T; readonly now: T }
  /** `inferred`: a list did not hold it any more, as after a reconnect; nobody was seen deleting it. */
  | { readonly type: 'deleted'; readonly key: string; readonly before: T; readonly inferred?: true };

export interface StoreSpec<T extends Projected> {
  readonly resource: Resource;
  /** One namespace; absent means all. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Picks the fields that are used; managedFields never. Must not throw; returning undefined leaves the object out. */
  readonly project: (object: KubeObject) => T | undefined;
  /** Named indexes: each maps an object to the values under which it is found. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
  /**
   * What grows beyond this is refused, keeps what it had, and counts as failing until a list is short enough again, which is tried every
   * few minutes: for servers that are not trusted. Default: no limit.
   */
  readonly maxObjects?: number;
  /** True for kinds that may not be installed (Argo Rollout): the store then counts as synced while the kind is absent. */
  readonly optional?: boolean;
  /**
   * True for custom kinds whose schema may change meanwhile. A watch shows objects cut to the schema of when it began, and the API
   * server ends it soon after the change: when a watch ends before its time, everything is listed anew, and an object counts as
   * changed that says something else under the same version.
   */
  readonly followsSchema?: boolean;
  /** Called when the watch could not go on and everything was listed anew. Of a store that is shared, whoever opened it first is told. */
  readonly relisted?: () => void;
}

/** A live, projected copy of one list-watch. Reads never block; listeners get events in order and may throw without harm. */
export interface Store<T extends Projected> {
  readonly resource: Resource;
  get(key: string): T | undefined;
  list(): Iterable<T>;
  byIndex(index: string, value: string): readonly T[];
  /** Calls back for everything present, then for each change; returns the unsubscribe. */
  subscribe(listener: (event: StoreEvent<T>) => void): () => void;
  /** True once the first list is complete (or the optional kind is known to be absent). */
  readonly synced: boolean;
  /** Resolves when synced; rejects when the store is closed or `signal` aborts first. */
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** Milliseconds since the last byte from the server (list answer, event or bookmark); Infinity before the first. */
  readonly ageMs: number;
  /** What failed last since then, and milliseconds since something first did; undefined while nothing has. */
  readonly failing?: Failing | undefined;
}

export interface Failing {
  readonly reason: string;
  readonly forMs: number;
}

/** A reference-counted handle; the watch ends when the last one is released. */
export interface StoreHandle<T extends Projected> {
  readonly store: Store<T>;
  release(): void;
}
