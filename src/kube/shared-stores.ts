import type { Resource } from '../api/object.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { InformerStore } from './informer-store.ts';
import type { KubeLog } from './log.ts';
import { reflect } from './reflector.ts';
import type { Projected, StoreHandle, StoreSpec } from './store.ts';
import type { Transport } from './transport.ts';
import { WatchProbe } from './watch-probe.ts';

export interface SharedStoresOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: KubeLog;
  /** Uniform in [0, 1), for delays. */
  readonly random: () => number;
  readonly watches?: WatchOptions | undefined;
}

export interface WatchOptions {
  /** Asks the API server every few seconds whether it still allows the watches (`WatchProbe`). */
  readonly probe?: boolean;
  /** For each list or watch that the server answers with 401, 403, 429, or a 5xx. */
  readonly onRefusal?: (resource: Resource, code: number) => void;
}

interface Entry {
  readonly store: InformerStore<Projected>;
  /** Resolves when the watch has ended. */
  readonly ended: Promise<void>;
  /** Handles that their readers have not released. */
  references: number;
}

/** `Cluster.watch` says which readers share a store. */
export class SharedStores {
  readonly #options: SharedStoresOptions;
  readonly #probe: WatchProbe | undefined;
  readonly #entries = new Map<string, Entry[]>();
  /** Numbers, so that stores with different projections have different keys. */
  readonly #projections = new WeakMap<object, number>();
  #projectionCount = 0;
  #closed = false;

  constructor(options: SharedStoresOptions) {
    this.#options = options;
    this.#probe = options.watches?.probe ? new WatchProbe(options) : undefined;
  }

  /** As `Cluster.watch`. */
  open<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    if (this.#closed)
      throw new CodedError('ClusterClosed', `cannot watch ${spec.resource.plural}: the cluster was closed`);
    const key = this.#keyOf(spec);
    const entries = this.#entries.get(key) ?? [];
    this.#entries.set(key, entries);
    // The key contains the identity of the projection, so the store at the key has its type.
    const shared = entries.find((entry) => (entry.store as unknown as InformerStore<T>).addIndexes(spec.indexes));
    const entry = shared ?? this.#start(spec);
    if (!shared) entries.push(entry);
    entry.references++;
    let released = false;
    return {
      store: entry.store as unknown as InformerStore<T>,
      release: () => {
        if (released) return;
        released = true;
        if (--entry.references === 0) this.#drop(key, entry);
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#probe?.close();
    const entries = [...this.#entries.values()].flat();
    this.#entries.clear();
    for (const { store } of entries) store.close();
    await Promise.all(entries.map(({ ended }) => ended));
  }

  #start<T extends Projected>(spec: StoreSpec<T>): Entry {
    const store = new InformerStore(spec, this.#options.clock, this.#options.log);
    const { watches, ...options } = this.#options;
    const ended = reflect(spec, store, { ...options, ...watches, probe: this.#probe, signal: store.signal });
    return { store: store as unknown as InformerStore<Projected>, ended, references: 0 };
  }

  #drop(key: string, entry: Entry): void {
    entry.store.close();
    const remaining = (this.#entries.get(key) ?? []).filter((other) => other !== entry);
    if (remaining.length > 0) this.#entries.set(key, remaining);
    else this.#entries.delete(key);
  }

  #keyOf<T extends Projected>({ resource, project, ...spec }: StoreSpec<T>): string {
    let projection = this.#projections.get(project);
    if (projection === undefined) {
      projection = this.#projectionCount++;
      this.#projections.set(project, projection);
    }
    return JSON.stringify([
      resource.group,
      resource.version,
      resource.plural,
      spec.namespace ?? '',
      spec.labelSelector ?? '',
      spec.fieldSelector ?? '',
      spec.optional ?? false,
      spec.followsSchema ?? false,
      projection,
    ]);
  }
}
