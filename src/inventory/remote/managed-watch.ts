import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Failing, Store, StoreEvent } from '../../kube/store.ts';
import type { Watched } from './projections.ts';
import { watchSpec } from './watch-spec.ts';

/**
 * One watch of a managed cluster, over all connections that it has had: what it has seen stays known when the credentials change, so
 * that only real changes are told.
 */
export class ManagedWatch {
  readonly watch: RemoteWatch;
  readonly #changed: () => void;
  readonly #seen = new Map<string, string>();
  /** False until it has once seen everything. */
  #primed = false;
  #store: Store<Watched> | undefined;
  #detach: () => void = () => {};

  constructor(watch: RemoteWatch, changed: () => void) {
    this.watch = watch;
    this.#changed = changed;
  }

  attach(cluster: Cluster): void {
    this.detach();
    const { store, release } = cluster.watch(watchSpec(this.watch));
    this.#store = store;
    const unsubscribe = store.subscribe((event) => this.#take(event));
    let attached = true;
    this.#detach = () => {
      attached = false;
      unsubscribe();
      release();
    };
    store.whenSynced().then(
      () => attached && this.#complete(store),
      () => undefined,
    );
  }

  detach(): void {
    this.#detach();
    this.#detach = () => {};
    this.#store = undefined;
  }

  get synced(): boolean {
    return this.#store?.synced ?? false;
  }

  /** Milliseconds since the cluster was heard of by this watch. */
  get silentMs(): number {
    return this.#store?.ageMs ?? Number.POSITIVE_INFINITY;
  }

  /** Since it was heard of last. */
  get failing(): Failing | undefined {
    return this.#store?.failing;
  }

  #take(event: StoreEvent<Watched>): void {
    if (event.type === 'deleted') {
      if (this.#seen.delete(event.key)) this.#tell();
      return;
    }
    const { key, digest } = event.now;
    if (this.#seen.get(key) === digest) return;
    this.#seen.set(key, digest);
    this.#tell();
  }

  /** What went while nobody looked; at the first time, everything may have changed since the last run. */
  #complete(store: Store<Watched>): void {
    const first = !this.#primed;
    this.#primed = true;
    const gone = [...this.#seen.keys()].filter((key) => !store.get(key));
    for (const key of gone) this.#seen.delete(key);
    if (first || gone.length > 0) this.#changed();
  }

  #tell(): void {
    if (this.#primed) this.#changed();
  }
}
