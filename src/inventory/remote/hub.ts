import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { kubeconfigKey, kubeconfigOutput, kubeconfigSecretName } from '../../api/inventory/names.ts';
import { secrets } from '../../api/resources.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { valueAt } from '../../kit/json-pointer.ts';
import { own } from '../../kit/json-value.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { Entry, EntryRef } from '../entry.ts';
import type { ComponentWatches, RemoteEvent, RemoteEvents } from '../ports.ts';
import { ManagedClusterWatches } from './managed-cluster.ts';
import { ManagementWatches } from './management-watches.ts';
import { aboutOf, watchText } from './watch-spec.ts';

interface RemoteHubOptions {
  /** The management cluster. */
  readonly cluster: Cluster;
  readonly client: Client;
  readonly connect: (credentials: Credentials) => Cluster;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Metrics;
  /** Maximum number of managed clusters that are watched at the same time. Default 500. */
  readonly budget?: number;
}

interface Followed {
  readonly ref: EntryRef;
  /** The wanted watches as text, to detect changes. */
  wanted: string;
  watches: readonly ComponentWatches[];
  /** Version of the kubeconfig in use; undefined if there is none. */
  version: string | undefined;
  /** Undefined if no watch is wanted, there is no kubeconfig, or the watches were evicted. */
  managed: ManagedClusterWatches | undefined;
  /** Time of the last reported change, monotonic milliseconds. */
  lastChangeMs: number;
  problem: string | undefined;
}

/** Interval of health checks, milliseconds. With the limits of a watch, an outage is reported within 70 s. */
const HEALTH_INTERVAL_MS = 5_000;
const DEFAULT_BUDGET = 500;

export function unhealthyWatchesMetric(metrics: Pick<Metrics, 'collected'>, unhealthy: () => number): void {
  const name = 'drawbridge_inventory_remote_watch_unhealthy';
  const help =
    'Entries whose watches of the managed cluster do not work. Their condition RemoteWatchHealthy has the cause.';
  metrics.collected({ name, help }, (set) => set({}, unhealthy()));
}

/**
 * Watches objects in managed clusters and in the management cluster, by entry. Watches of managed clusters have a budget and a health
 * status.
 */
export class RemoteHub implements RemoteEvents {
  readonly #options: RemoteHubOptions;
  readonly #entries = new Map<string, Followed>();
  readonly #management: ManagementWatches;
  readonly #listeners = new Set<(event: RemoteEvent) => void>();
  readonly #healthListeners = new Set<(entryUid: string) => void>();
  #cancelHealthCheck: Cancel = () => {};

  constructor(options: RemoteHubOptions) {
    this.#options = options;
    this.#management = new ManagementWatches(options.cluster, (uid, watch) => this.#changed(uid, watch));
    const unhealthy = () => [...this.#entries.values()].filter(({ problem }) => problem !== undefined).length;
    unhealthyWatchesMetric(options.metrics, unhealthy);
    this.#scheduleHealthCheck();
  }

  setWatches(entry: Entry, watches: readonly ComponentWatches[]): void {
    const { ref, content } = entry;
    const wanted = JSON.stringify(watches);
    const version = valueAt(content, `${kubeconfigOutput}/version`);
    const now = typeof version === 'string' ? version : undefined;
    const followed = this.#entries.get(ref.uid) ?? this.#follow(ref);
    const renewed = followed.version !== now;
    if (followed.wanted === wanted && !renewed) return;
    followed.wanted = wanted;
    followed.watches = watches;
    followed.version = now;
    this.#management.setWatches(ref, watchesOf(watches, 'management'));
    this.#open(followed, renewed);
    this.#updateHealth(ref.uid, followed);
  }

  forget(entryUid: string): void {
    const followed = this.#entries.get(entryUid);
    if (!followed) return;
    this.#entries.delete(entryUid);
    this.#management.setWatches(followed.ref, []);
    this.#drop(followed);
    this.#openEvicted();
  }

  subscribe(listener: (event: RemoteEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  problem(entryUid: string): string | undefined {
    return this.#entries.get(entryUid)?.problem;
  }

  onHealth(listener: (entryUid: string) => void): () => void {
    this.#healthListeners.add(listener);
    return () => void this.#healthListeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#cancelHealthCheck();
    this.#management.close();
    const open = [...this.#entries.values()].map(({ managed }) => managed?.close());
    this.#entries.clear();
    this.#listeners.clear();
    this.#healthListeners.clear();
    await Promise.all(open);
  }

  #follow(ref: EntryRef): Followed {
    const lastChangeMs = this.#options.clock.monotonic();
    const followed: Followed = {
      ref,
      wanted: '',
      watches: [],
      version: undefined,
      managed: undefined,
      lastChangeMs,
      problem: undefined,
    };
    this.#entries.set(ref.uid, followed);
    return followed;
  }

  #open(followed: Followed, renewed: boolean): void {
    const wanted = watchesOf(followed.watches, 'managed');
    const known = followed.managed;
    if (wanted.length === 0 || followed.version === undefined) {
      this.#drop(followed);
      if (known) this.#openEvicted();
      return;
    }
    const managed = known ?? this.#start(followed);
    followed.managed = managed;
    managed.setWatches(wanted);
    if (renewed || !known) void managed.open();
  }

  #start(followed: Followed): ManagedClusterWatches {
    this.#evict();
    const { clock, random } = this.#options;
    followed.lastChangeMs = clock.monotonic();
    return new ManagedClusterWatches({
      open: () => this.#connect(followed.ref),
      changed: (watch) => this.#changed(followed.ref.uid, watch),
      clock,
      random,
    });
  }

  async #connect({ namespace, uid }: EntryRef): Promise<Cluster> {
    const name = kubeconfigSecretName(uid);
    const secret = await this.#options.client.get(secrets, { namespace, name });
    const data = own(secret['data'], kubeconfigKey);
    if (typeof data !== 'string')
      throw new CodedError('NoKubeconfig', `Secret ${namespace}/${name} has no key ${kubeconfigKey}`);
    return this.#options.connect(await inlineCredentials(Buffer.from(data, 'base64').toString('utf8')));
  }

  /** Evicts the watches whose last reported change is oldest. */
  #evict(): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const open = [...this.#entries.values()].filter(({ managed }) => managed !== undefined);
    if (open.length < budget) return;
    const last = open.reduce((a, b) => (b.lastChangeMs < a.lastChangeMs ? b : a));
    this.#drop(last);
    this.#updateHealth(last.ref.uid, last);
  }

  /** Opens the watches of one evicted entry after budget was freed. */
  #openEvicted(): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const all = [...this.#entries.values()];
    if (all.filter(({ managed }) => managed !== undefined).length >= budget) return;
    const waiting = all.find((one) => !one.managed && one.version !== undefined && hasManaged(one));
    if (!waiting) return;
    this.#open(waiting, true);
    this.#updateHealth(waiting.ref.uid, waiting);
  }

  #drop(followed: Followed): void {
    const { managed } = followed;
    followed.managed = undefined;
    managed?.close().catch(() => undefined);
  }

  #changed(entryUid: string, changed: RemoteWatch): void {
    const followed = this.#entries.get(entryUid);
    if (!followed) return;
    followed.lastChangeMs = this.#options.clock.monotonic();
    const text = watchText(changed);
    const about = aboutOf(changed);
    for (const { component, watches } of followed.watches) {
      if (!watches.some((watch) => watchText(watch) === text)) continue;
      for (const listener of this.#listeners) listener({ entryUid, component, about });
    }
  }

  #scheduleHealthCheck(): void {
    this.#cancelHealthCheck = this.#options.clock.schedule(HEALTH_INTERVAL_MS, () => {
      for (const [entryUid, followed] of this.#entries) this.#updateHealth(entryUid, followed);
      this.#scheduleHealthCheck();
    });
  }

  #updateHealth(entryUid: string, followed: Followed): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const evicted = !followed.managed && followed.version !== undefined && hasManaged(followed);
    const problem = evicted
      ? `not watched: the limit of ${budget} watched clusters is reached`
      : followed.managed?.problem;
    const before = followed.problem;
    followed.problem = problem;
    if (before === problem) return;
    for (const listener of this.#healthListeners) listener(entryUid);
  }
}

const hasManaged = ({ watches }: Followed): boolean => watchesOf(watches, 'managed').length > 0;

const watchesOf = (wanted: readonly ComponentWatches[], cluster: RemoteWatch['cluster']): RemoteWatch[] =>
  wanted.flatMap(({ watches }) => watches.filter((watch) => watch.cluster === cluster));
