import { Listeners } from '../../kit/listeners.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Projected, Store, StoreEvent, StoreFailure, StoreHandle, StoreSpec } from '../../kube/store.ts';

type Listener<T> = (event: StoreEvent<T>) => void;

interface Watch<T extends Projected> {
  readonly handle: StoreHandle<T>;
  readonly unsubscribes: Map<Listener<T>, () => void>;
  readonly stopRefusals: () => void;
}

/**
 * Watches of one kind that begin and end, and look like one store. When a watch ends, its objects
 * leave by inferred deletions, although they may exist: check `isListed`.
 */
export class WatchSet<T extends Projected> {
  readonly #cluster: Pick<Cluster, 'watch'>;
  readonly #spec: StoreSpec<T>;
  readonly #watches = new Map<string, Watch<T>>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #stateListeners = new Listeners<string>();
  readonly #refusalListeners = new Listeners<void>();

  constructor(cluster: Pick<Cluster, 'watch'>, spec: StoreSpec<T>) {
    this.#cluster = cluster;
    this.#spec = spec;
  }

  /** `name`: of the watch; not open yet. */
  begin(name: string, fields: Pick<StoreSpec<T>, 'namespace' | 'labelSelector'> = {}): void {
    const handle = this.#cluster.watch({ ...this.#spec, ...fields });
    const stopRefusals = handle.store.onRefusal(() => this.#refusalListeners.notify());
    const watch: Watch<T> = { handle, unsubscribes: new Map(), stopRefusals };
    this.#watches.set(name, watch);
    for (const listener of this.#listeners) this.#attach(watch, listener);
    handle.store.whenSynced().then(
      () => {
        if (this.#watches.get(name) === watch) this.#stateListeners.notify(name);
      },
      // The store was closed before it synced.
      () => undefined,
    );
  }

  end(name: string): void {
    const watch = this.#watches.get(name);
    if (!watch) return;
    this.#watches.delete(name);
    const remaining = [...watch.handle.store.list()];
    release(watch);
    for (const before of remaining) {
      for (const listener of [...this.#listeners])
        listener({ type: 'deleted', key: before.key, before, inferred: true });
    }
    this.#stateListeners.notify(name);
    this.#refusalListeners.notify();
  }

  store(name: string): Store<T> | undefined {
    return this.#watches.get(name)?.handle.store;
  }

  get stores(): Store<T>[] {
    return [...this.#watches.values()].map(({ handle }) => handle.store);
  }

  /** If several watches show the object: the newest one. */
  get(key: string): T | undefined {
    let newest: T | undefined;
    for (const { handle } of this.#watches.values()) {
      const found = handle.store.get(key);
      if (found && (!newest || isOlder(newest.resourceVersion, found.resourceVersion))) newest = found;
    }
    return newest;
  }

  /** An object in two watches comes twice; so in `byIndex`. */
  *list(): Iterable<T> {
    for (const { handle } of this.#watches.values()) yield* handle.store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.stores.flatMap((store) => store.byIndex(index, value));
  }

  /** Whether a missing entry means a missing object. */
  isListed(_key: string): boolean {
    return this.synced;
  }

  /** Another watch makes it false again. */
  get synced(): boolean {
    return this.stores.every((store) => store.synced);
  }

  /** Of the oldest watch. */
  get ageMs(): number {
    return Math.max(...this.stores.map((store) => store.ageMs));
  }

  /** Refusals first. */
  get failing(): StoreFailure | undefined {
    const failures = this.stores.flatMap(({ failing }) => failing ?? []);
    return failures.find(({ refused }) => refused !== undefined) ?? failures[0];
  }

  subscribe(listener: Listener<T>): () => void {
    // A new function, so that the same listener can subscribe twice.
    const subscription: Listener<T> = (event) => listener(event);
    this.#listeners.add(subscription);
    for (const watch of this.#watches.values()) this.#attach(watch, subscription);
    return () => {
      this.#listeners.delete(subscription);
      for (const { unsubscribes } of this.#watches.values()) {
        unsubscribes.get(subscription)?.();
        unsubscribes.delete(subscription);
      }
    };
  }

  /** Calls back with the name of a watch that has listed its objects, or has ended. */
  onStateChange(listener: (name: string) => void): () => void {
    return this.#stateListeners.add(listener);
  }

  /** Calls back with the name of a watch that has listed its objects. */
  onListed(listener: (name: string) => void): () => void {
    return this.onStateChange((name) => {
      if (this.#watches.has(name)) listener(name);
    });
  }

  /** Also when a watch ends. */
  onRefusal(listener: () => void): () => void {
    return this.#refusalListeners.add(listener);
  }

  /** Ends all watches without events. */
  close(): void {
    for (const listeners of [this.#listeners, this.#stateListeners, this.#refusalListeners]) listeners.clear();
    for (const watch of this.#watches.values()) release(watch);
    this.#watches.clear();
  }

  #attach({ handle, unsubscribes }: Watch<T>, listener: Listener<T>): void {
    unsubscribes.set(listener, handle.store.subscribe(listener));
  }
}

function release<T extends Projected>({ handle, unsubscribes, stopRefusals }: Watch<T>): void {
  stopRefusals();
  for (const unsubscribe of unsubscribes.values()) unsubscribe();
  handle.release();
}
