import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { kubeconfigKey, kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { secrets } from '../../api/resources.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { valueAt } from '../../kit/json-pointer.ts';
import { own } from '../../kit/json-value.ts';
import { Listeners } from '../../kit/listeners.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { Entry, EntryRef } from '../entry.ts';
import type { ComponentWatches, RemoteEvent, RemoteWatcher } from '../ports.ts';
import { ManagedClusterWatches } from './managed-cluster.ts';
import { ManagementWatches } from './management-watches.ts';
import { detailOf, watchKey } from './watch-spec.ts';

interface RemoteHubOptions {
  readonly cluster: Cluster;
  /** Reads the Secrets with kubeconfigs; works only while this replica leads. */
  readonly client: Client;
  readonly connect: (credentials: Credentials) => Cluster;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly metrics: Metrics;
  /** Managed clusters that are watched at the same time. Default 500. */
  readonly maxClusters?: number;
}

interface WatchedEntry {
  readonly ref: EntryRef;
  /** `watches` as JSON, to detect changes. */
  watchesText: string;
  watches: readonly ComponentWatches[];
  /** Of the published kubeconfig. */
  version: string | undefined;
  /** Undefined if the entry wants none, publishes no kubeconfig, or was evicted. */
  managed: ManagedClusterWatches | undefined;
  /** Last reported change or start of the watches, monotonic milliseconds. */
  lastChangeMs: number;
  /** Why the watches of the managed cluster were unhealthy at the last check. */
  problem: string | undefined;
}

const HEALTH_INTERVAL_MS = 5_000;
const DEFAULT_MAX_CLUSTERS = 500;

/** `unhealthy` counts the entries at each scrape. */
export function unhealthyWatchesMetric(metrics: Pick<Metrics, 'collected'>, unhealthy: () => number): void {
  const name = 'drawbridge_inventory_remote_watch_unhealthy';
  const help = 'Entries whose watches of the managed cluster do not work: see their condition RemoteWatchHealthy.';
  metrics.collected({ name, help }, (set) => set({}, unhealthy()));
}

/**
 * Watches objects in managed clusters and the management cluster for entries. At the maximum number
 * of clusters, a new one evicts the one whose last change, or start, is oldest. `problem` explains
 * unhealthy and evicted watches.
 */
export class RemoteHub implements RemoteWatcher {
  readonly #options: RemoteHubOptions;
  readonly #maxClusters: number;
  readonly #entries = new Map<string, WatchedEntry>();
  readonly #management: ManagementWatches;
  readonly #listeners = new Listeners<RemoteEvent>();
  readonly #healthListeners = new Listeners<string>();
  #cancelHealthCheck: Cancel = () => {};

  constructor(options: RemoteHubOptions) {
    this.#options = options;
    this.#maxClusters = options.maxClusters ?? DEFAULT_MAX_CLUSTERS;
    this.#management = new ManagementWatches(options.cluster, (uid, watch) => this.#onChange(uid, watch));
    const unhealthy = () => [...this.#entries.values()].filter(({ problem }) => problem !== undefined).length;
    unhealthyWatchesMetric(options.metrics, unhealthy);
    this.#scheduleHealthCheck();
  }

  setWatches(entry: Entry, watches: readonly ComponentWatches[]): void {
    const { ref, content } = entry;
    const watchesText = JSON.stringify(watches);
    const published = valueAt(content, `${kubeconfigOutput}/version`);
    const version = typeof published === 'string' ? published : undefined;
    const watchedEntry = this.#entries.get(ref.uid) ?? this.#add(ref);
    const isNewVersion = watchedEntry.version !== version;
    if (watchedEntry.watchesText === watchesText && !isNewVersion) return;
    watchedEntry.watchesText = watchesText;
    watchedEntry.watches = watches;
    watchedEntry.version = version;
    this.#management.setWatches(ref, watchesOf(watches, 'management'));
    this.#open(watchedEntry, isNewVersion);
    this.#updateHealth(ref.uid, watchedEntry);
  }

  forget(entryUid: string): void {
    const watchedEntry = this.#entries.get(entryUid);
    if (!watchedEntry) return;
    this.#entries.delete(entryUid);
    this.#management.setWatches(watchedEntry.ref, []);
    this.#drop(watchedEntry);
    this.#openEvicted();
  }

  subscribe(listener: (event: RemoteEvent) => void): () => void {
    return this.#listeners.add(listener);
  }

  problem(entryUid: string): string | undefined {
    return this.#entries.get(entryUid)?.problem;
  }

  onHealth(listener: (entryUid: string) => void): () => void {
    return this.#healthListeners.add(listener);
  }

  async close(): Promise<void> {
    this.#cancelHealthCheck();
    this.#management.close();
    const closing = [...this.#entries.values()].map(({ managed }) => managed?.close());
    this.#entries.clear();
    this.#listeners.clear();
    this.#healthListeners.clear();
    await Promise.all(closing);
  }

  #add(ref: EntryRef): WatchedEntry {
    const lastChangeMs = this.#options.clock.monotonic();
    const watchedEntry: WatchedEntry = {
      ref,
      watchesText: '',
      watches: [],
      version: undefined,
      managed: undefined,
      lastChangeMs,
      problem: undefined,
    };
    this.#entries.set(ref.uid, watchedEntry);
    return watchedEntry;
  }

  #open(watchedEntry: WatchedEntry, isNewVersion: boolean): void {
    const wanted = watchesOf(watchedEntry.watches, 'managed');
    const current = watchedEntry.managed;
    if (wanted.length === 0 || watchedEntry.version === undefined) {
      this.#drop(watchedEntry);
      if (current) this.#openEvicted();
      return;
    }
    const managed = current ?? this.#start(watchedEntry);
    watchedEntry.managed = managed;
    managed.setWatches(wanted);
    if (isNewVersion || !current) void managed.open();
  }

  #start(watchedEntry: WatchedEntry): ManagedClusterWatches {
    this.#evict();
    const { clock, random } = this.#options;
    watchedEntry.lastChangeMs = clock.monotonic();
    return new ManagedClusterWatches({
      open: () => this.#connect(watchedEntry.ref),
      onChange: (watch) => this.#onChange(watchedEntry.ref.uid, watch),
      clock,
      random,
    });
  }

  async #connect({ namespace, uid }: EntryRef): Promise<Cluster> {
    const name = kubeconfigSecretName(uid);
    const secret = await this.#options.client.get(secrets, { namespace, name });
    const data = own(secret['data'], kubeconfigKey);
    if (typeof data !== 'string')
      throw new CodedError(
        'NoKubeconfig',
        `Secret ${namespace}/${name} has no key ${kubeconfigKey}; the component that produces the kubeconfig must write it`,
      );
    return this.#options.connect(await inlineCredentials(Buffer.from(data, 'base64').toString('utf8')));
  }

  /** At the maximum, closes the watches whose last reported change, or start, is oldest. */
  #evict(): void {
    const open = [...this.#entries.values()].filter(({ managed }) => managed !== undefined);
    if (open.length < this.#maxClusters) return;
    const stalest = open.reduce((a, b) => (b.lastChangeMs < a.lastChangeMs ? b : a));
    this.#drop(stalest);
    this.#updateHealth(stalest.ref.uid, stalest);
  }

  /** Opens the watches of one evicted entry, unless at the maximum. */
  #openEvicted(): void {
    const all = [...this.#entries.values()];
    if (all.filter(({ managed }) => managed !== undefined).length >= this.#maxClusters) return;
    const evicted = all.find(isEvicted);
    if (!evicted) return;
    this.#open(evicted, true);
    this.#updateHealth(evicted.ref.uid, evicted);
  }

  #drop(watchedEntry: WatchedEntry): void {
    const { managed } = watchedEntry;
    watchedEntry.managed = undefined;
    managed?.close().catch(() => undefined);
  }

  #onChange(entryUid: string, changed: RemoteWatch): void {
    const watchedEntry = this.#entries.get(entryUid);
    if (!watchedEntry) return;
    watchedEntry.lastChangeMs = this.#options.clock.monotonic();
    const key = watchKey(changed);
    const detail = detailOf(changed);
    for (const { component, watches } of watchedEntry.watches) {
      if (!watches.some((watch) => watchKey(watch) === key)) continue;
      this.#listeners.notify({ entryUid, component, detail });
    }
  }

  #scheduleHealthCheck(): void {
    this.#cancelHealthCheck = this.#options.clock.schedule(HEALTH_INTERVAL_MS, () => {
      for (const [entryUid, watchedEntry] of this.#entries) this.#updateHealth(entryUid, watchedEntry);
      this.#scheduleHealthCheck();
    });
  }

  #updateHealth(entryUid: string, watchedEntry: WatchedEntry): void {
    const problem = isEvicted(watchedEntry)
      ? `the server does not watch the managed cluster, because it watches at most ${this.#maxClusters} clusters at a time; components with watches run about every five minutes instead`
      : watchedEntry.managed?.problem;
    const before = watchedEntry.problem;
    watchedEntry.problem = problem;
    if (before !== problem) this.#healthListeners.notify(entryUid);
  }
}

/** The entry wants watches of its managed cluster, but they are not open. */
const isEvicted = ({ managed, version, watches }: WatchedEntry): boolean =>
  !managed && version !== undefined && watchesOf(watches, 'managed').length > 0;

const watchesOf = (wanted: readonly ComponentWatches[], cluster: RemoteWatch['cluster']): RemoteWatch[] =>
  wanted.flatMap(({ watches }) => watches.filter((watch) => watch.cluster === cluster));
