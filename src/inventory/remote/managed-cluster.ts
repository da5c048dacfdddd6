import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { backoffMs } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { STALE_MS, type Store, type StoreEvent, type StoreFailure } from '../../kube/store.ts';
import { type WatchedObject, watchKey, watchSpec } from './watch-spec.ts';

interface ManagedClusterOptions {
  /** With the current kubeconfig. */
  readonly open: () => Promise<Cluster>;
  readonly onChange: (watch: RemoteWatch) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** A watch is unhealthy if it fails for longer than this. */
const MAX_FAILING_MS = 10_000;
/** A watch is unhealthy without a complete list this long after `#openedAtMs`. */
const MAX_FIRST_LIST_MS = 45_000;
/** `#retryOpen` adds `baseMs`, because a jittered delay may be near 0. */
const CONNECT_BACKOFF = { baseMs: 1_000, capMs: 30_000 };

const checkConnection = 'check that this server can reach the managed cluster';

/** The watches of one managed cluster; they share connections. */
export class ManagedClusterWatches {
  readonly #options: ManagedClusterOptions;
  readonly #watches = new Map<string, ManagedWatch>();
  #cluster: Cluster | undefined;
  /** Why the last attempt to connect failed. */
  #openProblem: string | undefined;
  /** Last successful connect, or the creation; monotonic milliseconds. */
  #openedAtMs: number;
  /** Since the last success. */
  #failedAttempts = 0;
  /** Number of the latest attempt; an earlier one drops its result. */
  #attempt = 0;
  #cancelRetry: Cancel = () => {};

  constructor(options: ManagedClusterOptions) {
    this.#options = options;
    this.#openedAtMs = options.clock.monotonic();
  }

  setWatches(watches: readonly RemoteWatch[]): void {
    const wanted = new Map(watches.map((watch) => [watchKey(watch), watch]));
    for (const [key, watch] of [...this.#watches]) {
      if (wanted.has(key)) continue;
      watch.detach();
      this.#watches.delete(key);
    }
    for (const [key, watch] of wanted) {
      if (this.#watches.has(key)) continue;
      const managed = new ManagedWatch(watch, () => this.#options.onChange(watch));
      this.#watches.set(key, managed);
      if (this.#cluster) managed.attach(this.#cluster);
    }
  }

  /** With the current kubeconfig. Resolves after one attempt, and retries in the background. */
  async open(): Promise<void> {
    this.#cancelRetry();
    const attempt = ++this.#attempt;
    let cluster: Cluster;
    try {
      cluster = await this.#options.open();
    } catch (error) {
      if (attempt === this.#attempt) this.#retryOpen(describe(error));
      return;
    }
    if (attempt !== this.#attempt) return cluster.close();
    const previous = this.#cluster;
    this.#cluster = cluster;
    this.#openProblem = undefined;
    this.#failedAttempts = 0;
    this.#openedAtMs = this.#options.clock.monotonic();
    for (const watch of this.#watches.values()) watch.attach(cluster);
    await previous?.close();
  }

  /** Why the watches are unhealthy. No growing durations: each new text costs a status write. */
  get problem(): string | undefined {
    if (this.#openProblem !== undefined) return this.#openProblem;
    const sinceOpenMs = this.#options.clock.monotonic() - this.#openedAtMs;
    for (const { watch, synced, silentMs, failing } of this.#watches.values()) {
      if (failing && failing.forMs > MAX_FAILING_MS) return `the watch of ${watch.resource} fails: ${failing.reason}`;
      if (!synced && sinceOpenMs > MAX_FIRST_LIST_MS)
        return `the list of ${watch.resource} has not completed for over ${MAX_FIRST_LIST_MS / 1000} s; ${checkConnection}`;
      if (synced && silentMs > STALE_MS)
        return `the watch of ${watch.resource} received nothing for over ${STALE_MS / 1000} s; ${checkConnection}`;
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#attempt++;
    this.#cancelRetry();
    for (const watch of this.#watches.values()) watch.detach();
    this.#watches.clear();
    const cluster = this.#cluster;
    this.#cluster = undefined;
    await cluster?.close();
  }

  #retryOpen(problem: string): void {
    this.#openProblem = `the server cannot connect to the managed cluster: ${problem}`;
    const { clock, random } = this.#options;
    const delayMs = CONNECT_BACKOFF.baseMs + backoffMs({ ...CONNECT_BACKOFF, attempt: this.#failedAttempts++, random });
    this.#cancelRetry = clock.schedule(delayMs, () => void this.open());
  }
}

/** One watch of a managed cluster. Keeps digests across connections, to report only changes. */
class ManagedWatch {
  readonly watch: RemoteWatch;
  readonly #onChange: () => void;
  readonly #digests = new Map<string, string>();
  /** On this or an earlier connection. */
  #listedOnce = false;
  #store: Store<WatchedObject> | undefined;
  #detach: () => void = () => {};

  constructor(watch: RemoteWatch, onChange: () => void) {
    this.watch = watch;
    this.#onChange = onChange;
  }

  attach(cluster: Cluster): void {
    this.detach();
    const { store, release } = cluster.watch(watchSpec(this.watch));
    this.#store = store;
    const unsubscribe = store.subscribe((event) => this.#onEvent(event));
    let attached = true;
    this.#detach = () => {
      attached = false;
      unsubscribe();
      release();
    };
    store.whenSynced().then(
      () => attached && this.#onListed(store),
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

  /** `Store.ageMs`; Infinity if not attached. */
  get silentMs(): number {
    return this.#store?.ageMs ?? Number.POSITIVE_INFINITY;
  }

  /** Undefined once the cluster answers again. */
  get failing(): StoreFailure | undefined {
    return this.#store?.failing;
  }

  #onEvent(event: StoreEvent<WatchedObject>): void {
    if (event.type === 'deleted') {
      if (this.#digests.delete(event.key)) this.#reportChange();
      return;
    }
    const { key, digest } = event.now;
    if (this.#digests.get(key) === digest) return;
    this.#digests.set(key, digest);
    this.#reportChange();
  }

  /** Reports missed deletes, and the first list: objects may have changed before it. */
  #onListed(store: Store<WatchedObject>): void {
    const isFirstList = !this.#listedOnce;
    this.#listedOnce = true;
    const gone = [...this.#digests.keys()].filter((key) => !store.get(key));
    for (const key of gone) this.#digests.delete(key);
    if (isFirstList || gone.length > 0) this.#onChange();
  }

  #reportChange(): void {
    if (this.#listedOnce) this.#onChange();
  }
}
