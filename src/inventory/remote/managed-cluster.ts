import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Failing, Store, StoreEvent } from '../../kube/store.ts';
import { type Watched, watchSpec, watchText } from './watch-spec.ts';

interface ManagedClusterOptions {
  /** Connects to the cluster with the current kubeconfig. */
  readonly open: () => Promise<Cluster>;
  readonly changed: (watch: RemoteWatch) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Duration of failures after which a watch is unhealthy; about four attempts. */
const FAILING_MS = 10_000;
/** Time after which an incomplete list counts as failed. */
const LISTED_MS = 45_000;
/** Time without any data after which a watch is unhealthy. A healthy watch confirms its connection at least every 30 s. */
const SILENT_MS = 60_000;
const RETRY = { baseMs: 1_000, capMs: 30_000 };

/** The watches of one managed cluster; they share connections. */
export class ManagedClusterWatches {
  readonly #options: ManagedClusterOptions;
  readonly #watches = new Map<string, ManagedWatch>();
  #cluster: Cluster | undefined;
  #failure: string | undefined;
  #sinceMs: number;
  #failures = 0;
  #opening = 0;
  #cancelRetry: Cancel = () => {};

  constructor(options: ManagedClusterOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.monotonic();
  }

  /** Replaces the watches. */
  setWatches(watches: readonly RemoteWatch[]): void {
    const wanted = new Map(watches.map((watch) => [watchText(watch), watch]));
    for (const [text, watch] of [...this.#watches]) {
      if (wanted.has(text)) continue;
      watch.detach();
      this.#watches.delete(text);
    }
    for (const [text, watch] of wanted) {
      if (this.#watches.has(text)) continue;
      const managed = new ManagedWatch(watch, () => this.#options.changed(watch));
      this.#watches.set(text, managed);
      if (this.#cluster) managed.attach(this.#cluster);
    }
  }

  /** Connects to the cluster, or reconnects with a new kubeconfig. Retries failures. Never rejects. */
  async open(): Promise<void> {
    this.#cancelRetry();
    const attempt = ++this.#opening;
    let cluster: Cluster;
    try {
      cluster = await this.#options.open();
    } catch (error) {
      if (attempt === this.#opening) this.#failed(describe(error));
      return;
    }
    if (attempt !== this.#opening) return cluster.close();
    const before = this.#cluster;
    this.#cluster = cluster;
    this.#failure = undefined;
    this.#failures = 0;
    this.#sinceMs = this.#options.clock.monotonic();
    for (const watch of this.#watches.values()) watch.attach(cluster);
    await before?.close();
  }

  /** Why the watches are unhealthy. The text stays the same while the reason does. */
  get problem(): string | undefined {
    if (this.#failure !== undefined) return this.#failure;
    const openMs = this.#options.clock.monotonic() - this.#sinceMs;
    for (const { watch, synced, silentMs, failing } of this.#watches.values()) {
      if (failing && failing.forMs > FAILING_MS) return `the watch of ${watch.resource} fails: ${failing.reason}`;
      if (!synced && openMs > LISTED_MS)
        return `the list of ${watch.resource} has not completed for over ${LISTED_MS / 1000} s`;
      if (synced && silentMs > SILENT_MS)
        return `the watch of ${watch.resource} received nothing for over ${SILENT_MS / 1000} s`;
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#opening++;
    this.#cancelRetry();
    for (const watch of this.#watches.values()) watch.detach();
    this.#watches.clear();
    const cluster = this.#cluster;
    this.#cluster = undefined;
    await cluster?.close();
  }

  #failed(why: string): void {
    this.#failure = why;
    const { clock, random } = this.#options;
    const delayMs = RETRY.baseMs + backoffMs({ ...RETRY, attempt: this.#failures++, random });
    this.#cancelRetry = clock.schedule(delayMs, () => void this.open());
  }
}

/** One watch of a managed cluster. It keeps the seen objects when the connection changes, so it reports only real changes. */
class ManagedWatch {
  readonly watch: RemoteWatch;
  readonly #changed: () => void;
  readonly #seen = new Map<string, string>();
  /** True after the first complete list. */
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

  /** Milliseconds since this watch last received data from the cluster. */
  get silentMs(): number {
    return this.#store?.ageMs ?? Number.POSITIVE_INFINITY;
  }

  /** Failures since this watch last received data. */
  get failing(): Failing | undefined {
    return this.#store?.failing;
  }

  #take(event: StoreEvent<Watched>): void {
    if (event.type === 'deleted') {
      if (this.#seen.delete(event.key)) this.#reportChange();
      return;
    }
    const { key, digest } = event.now;
    if (this.#seen.get(key) === digest) return;
    this.#seen.set(key, digest);
    this.#reportChange();
  }

  /** Reports objects that were deleted while disconnected. After the first list, anything may have changed since the last run. */
  #complete(store: Store<Watched>): void {
    const first = !this.#primed;
    this.#primed = true;
    const gone = [...this.#seen.keys()].filter((key) => !store.get(key));
    for (const key of gone) this.#seen.delete(key);
    if (first || gone.length > 0) this.#changed();
  }

  #reportChange(): void {
    if (this.#primed) this.#changed();
  }
}
