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
  /** Managed clusters that are watched at a time. Default 500. */
  readonly budget?: number;
}

interface Followed {
  readonly ref: EntryRef;
  /** What is wanted, as text: nothing is to be done while it stays the same. */
  wanted: string;
  watches: readonly ComponentWatches[];
  /** Of the kubeconfig that is in use; undefined while there is none. */
  version: string | undefined;
  /** Undefined: nothing is wanted there, there is no kubeconfig, or it had to make room. */
  managed: ManagedClusterWatches | undefined;
  /** Monotonic milliseconds of what it was last good for. */
  usefulMs: number;
  problem: string | undefined;
}

/** How often health is looked at: with the limits of a watch, a loss is told within 70 s. */
const LOOK_MS = 5_000;
const DEFAULT_BUDGET = 500;

export function unhealthyWatchesMetric(metrics: Pick<Metrics, 'collected'>, unhealthy: () => number): void {
  const name = 'drawbridge_inventory_remote_watch_unhealthy';
  const help =
    'Entries whose watches of the managed cluster do not work. Their condition RemoteWatchHealthy has the cause.';
  metrics.collected({ name, help }, (set) => set({}, unhealthy()));
}

/** Watches of managed clusters and of the management cluster, by entry; the managed ones have a budget and their health is known. */
export class RemoteHub implements RemoteEvents {
  readonly #options: RemoteHubOptions;
  readonly #entries = new Map<string, Followed>();
  readonly #management: ManagementWatches;
  readonly #listeners = new Set<(event: RemoteEvent) => void>();
  readonly #healthListeners = new Set<(entryUid: string) => void>();
  #cancelLook: Cancel = () => {};

  constructor(options: RemoteHubOptions) {
    this.#options = options;
    this.#management = new ManagementWatches(options.cluster, (uid, watch) => this.#changed(uid, watch));
    const unhealthy = () => [...this.#entries.values()].filter(({ problem }) => problem !== undefined).length;
    unhealthyWatchesMetric(options.metrics, unhealthy);
    this.#lookLater();
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
    this.#management.want(ref, watchesOf(watches, 'management'));
    this.#open(followed, renewed);
    this.#judge(ref.uid, followed);
  }

  forget(entryUid: string): void {
    const followed = this.#entries.get(entryUid);
    if (!followed) return;
    this.#entries.delete(entryUid);
    this.#management.want(followed.ref, []);
    this.#drop(followed);
    this.#fill();
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
    this.#cancelLook();
    this.#management.close();
    const open = [...this.#entries.values()].map(({ managed }) => managed?.close());
    this.#entries.clear();
    this.#listeners.clear();
    this.#healthListeners.clear();
    await Promise.all(open);
  }

  #follow(ref: EntryRef): Followed {
    const usefulMs = this.#options.clock.monotonic();
    const followed: Followed = {
      ref,
      wanted: '',
      watches: [],
      version: undefined,
      managed: undefined,
      usefulMs,
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
      if (known) this.#fill();
      return;
    }
    const managed = known ?? this.#start(followed);
    followed.managed = managed;
    managed.want(wanted);
    if (renewed || !known) void managed.open();
  }

  #start(followed: Followed): ManagedClusterWatches {
    this.#makeRoom();
    const { clock, random } = this.#options;
    followed.usefulMs = clock.monotonic();
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
      throw new CodedError('NoKubeconfig', `secret ${namespace}/${name} holds no kubeconfig`);
    return this.#options.connect(await inlineCredentials(Buffer.from(data, 'base64').toString('utf8')));
  }

  /** The least recently useful has to go. */
  #makeRoom(): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const open = [...this.#entries.values()].filter(({ managed }) => managed !== undefined);
    if (open.length < budget) return;
    const last = open.reduce((a, b) => (b.usefulMs < a.usefulMs ? b : a));
    this.#drop(last);
    this.#judge(last.ref.uid, last);
  }

  /** There is room again. */
  #fill(): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const all = [...this.#entries.values()];
    if (all.filter(({ managed }) => managed !== undefined).length >= budget) return;
    const waiting = all.find((one) => !one.managed && one.version !== undefined && hasManaged(one));
    if (!waiting) return;
    this.#open(waiting, true);
    this.#judge(waiting.ref.uid, waiting);
  }

  #drop(followed: Followed): void {
    const { managed } = followed;
    followed.managed = undefined;
    managed?.close().catch(() => undefined);
  }

  #changed(entryUid: string, changed: RemoteWatch): void {
    const followed = this.#entries.get(entryUid);
    if (!followed) return;
    followed.usefulMs = this.#options.clock.monotonic();
    const text = watchText(changed);
    const about = aboutOf(changed);
    for (const { component, watches } of followed.watches) {
      if (!watches.some((watch) => watchText(watch) === text)) continue;
      for (const listener of this.#listeners) listener({ entryUid, component, about });
    }
  }

  #lookLater(): void {
    this.#cancelLook = this.#options.clock.schedule(LOOK_MS, () => {
      for (const [entryUid, followed] of this.#entries) this.#judge(entryUid, followed);
      this.#lookLater();
    });
  }

  #judge(entryUid: string, followed: Followed): void {
    const { budget = DEFAULT_BUDGET } = this.#options;
    const evicted = !followed.managed && followed.version !== undefined && hasManaged(followed);
    const problem = evicted ? `${budget} other clusters are watched, and no more can be` : followed.managed?.problem;
    const told = followed.problem;
    followed.problem = problem;
    if (told === problem) return;
    for (const listener of this.#healthListeners) listener(entryUid);
  }
}

const hasManaged = ({ watches }: Followed): boolean => watchesOf(watches, 'managed').length > 0;

const watchesOf = (wanted: readonly ComponentWatches[], cluster: RemoteWatch['cluster']): RemoteWatch[] =>
  wanted.flatMap(({ watches }) => watches.filter((watch) => watch.cluster === cluster));
