import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Failing, Store, StoreEvent } from '../../kube/store.ts';
import { type Watched, watchSpec, watchText } from './watch-spec.ts';

interface ManagedClusterOptions {
  /** Opens the cluster with the kubeconfig of now. Rejects with why it cannot. */
  readonly open: () => Promise<Cluster>;
  readonly changed: (watch: RemoteWatch) => void;
  readonly clock: Clock;
  readonly random: () => number;
}

/** What fails for as long is no short interruption; about four tries. */
const FAILING_MS = 10_000;
/** A list that takes longer has failed, as far as anybody can tell. */
const LISTED_MS = 45_000;
/** A healthy watch hears of its server at least every 30 s. */
const SILENT_MS = 60_000;
const AGAIN = { baseMs: 1_000, capMs: 30_000 };

/** The watches of one managed cluster, on one set of connections. */
export class ManagedClusterWatches {
  readonly #options: ManagedClusterOptions;
  readonly #watches = new Map<string, ManagedWatch>();
  #cluster: Cluster | undefined;
  #failure: string | undefined;
  #sinceMs: number;
  #failures = 0;
  #opening = 0;
  #again: Cancel = () => {};

  constructor(options: ManagedClusterOptions) {
    this.#options = options;
    this.#sinceMs = options.clock.monotonic();
  }

  /** From now on exactly these. */
  want(watches: readonly RemoteWatch[]): void {
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

  /** Opens the cluster, anew if it is open: there is another kubeconfig. Never rejects; what it cannot do it tries again. */
  async open(): Promise<void> {
    this.#again();
    const turn = ++this.#opening;
    let cluster: Cluster;
    try {
      cluster = await this.#options.open();
    } catch (error) {
      if (turn === this.#opening) this.#failed(describe(error));
      return;
    }
    if (turn !== this.#opening) return cluster.close();
    const before = this.#cluster;
    this.#cluster = cluster;
    this.#failure = undefined;
    this.#failures = 0;
    this.#sinceMs = this.#options.clock.monotonic();
    for (const watch of this.#watches.values()) watch.attach(cluster);
    await before?.close();
  }

  /** Why it is not to be relied on; the same text for as long as that is the reason. */
  get problem(): string | undefined {
    if (this.#failure !== undefined) return this.#failure;
    const openMs = this.#options.clock.monotonic() - this.#sinceMs;
    for (const { watch, synced, silentMs, failing } of this.#watches.values()) {
      if (failing && failing.forMs > FAILING_MS) return `${watch.resource} cannot be watched: ${failing.reason}`;
      if (!synced && openMs > LISTED_MS) return `${watch.resource} could not be listed for over ${LISTED_MS / 1000} s`;
      if (synced && silentMs > SILENT_MS)
        return `nothing was heard of ${watch.resource} for over ${SILENT_MS / 1000} s`;
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#opening++;
    this.#again();
    for (const watch of this.#watches.values()) watch.detach();
    this.#watches.clear();
    const cluster = this.#cluster;
    this.#cluster = undefined;
    await cluster?.close();
  }

  #failed(why: string): void {
    this.#failure = why;
    const { clock, random } = this.#options;
    const delayMs = AGAIN.baseMs + backoffMs({ ...AGAIN, attempt: this.#failures++, random });
    this.#again = clock.schedule(delayMs, () => void this.open());
  }
}

/**
 * One watch of a managed cluster, over all connections that it has had: what it has seen stays known when the credentials change, so
 * that only real changes are told.
 */
class ManagedWatch {
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
