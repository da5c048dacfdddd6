import { nameOf, type Resource } from '../../api/object.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreEvent, StoreFailure, StoreHandle, StoreSpec } from '../../kube/store.ts';
import type { ServiceNamespaceView } from '../stores/provider-stores.ts';

export interface ServiceNamespaceStoreOptions<T extends Projected> {
  readonly cluster: Cluster;
  readonly clusterNamespace: string;
  readonly serviceNamespaces: Store<ServiceNamespaceView>;
  readonly spec: Omit<StoreSpec<T>, 'namespace'>;
}

type Listener<T> = (event: StoreEvent<T>) => void;

interface OpenNamespace<T extends Projected> {
  readonly handle: StoreHandle<T>;
  /** Keys of the APIServiceNamespaces that name it. */
  readonly users: Set<string>;
  readonly unsubscribes: Map<Listener<T>, () => void>;
  readonly stopRefusals: () => void;
}

/**
 * A kind in all service namespaces, with a watch for each while an APIServiceNamespace names it.
 * When a watch ends, its objects leave although they may exist: check `isListed`.
 */
export class ServiceNamespaceStore<T extends Projected> implements Store<T> {
  readonly resource: Resource;
  readonly #options: ServiceNamespaceStoreOptions<T>;
  readonly #open = new Map<string, OpenNamespace<T>>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #listedListeners = new Set<(namespace: string) => void>();
  readonly #refusalListeners = new Set<() => void>();
  readonly #closed = new AbortController();
  readonly #unsubscribe: () => void;

  constructor(options: ServiceNamespaceStoreOptions<T>) {
    this.resource = options.spec.resource;
    this.#options = options;
    this.#unsubscribe = options.serviceNamespaces.subscribe((event) => {
      const before = 'before' in event ? this.#namespaceOf(event.before) : undefined;
      const now = 'now' in event ? this.#namespaceOf(event.now) : undefined;
      if (before === now) return;
      if (now !== undefined) this.#use(now, event.key);
      if (before !== undefined) this.#unuse(before, event.key);
    });
  }

  get(key: string): T | undefined {
    return this.#open.get(nameOf(key).namespace ?? '')?.handle.store.get(key);
  }

  /** Only then does a missing entry mean a missing object. */
  isListed(key: string): boolean {
    return this.#open.get(nameOf(key).namespace ?? '')?.handle.store.synced ?? false;
  }

  *list(): Iterable<T> {
    for (const { handle } of this.#open.values()) yield* handle.store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return [...this.#open.values()].flatMap(({ handle }) => handle.store.byIndex(index, value));
  }

  subscribe(listener: Listener<T>): () => void {
    const subscription: Listener<T> = (event) => listener(event);
    this.#listeners.add(subscription);
    for (const open of this.#open.values()) this.#attach(open, subscription);
    return () => {
      this.#listeners.delete(subscription);
      for (const { unsubscribes } of this.#open.values()) {
        unsubscribes.get(subscription)?.();
        unsubscribes.delete(subscription);
      }
    };
  }

  onListed(listener: (namespace: string) => void): () => void {
    this.#listedListeners.add(listener);
    return () => void this.#listedListeners.delete(listener);
  }

  /** A new namespace makes it false again. */
  get synced(): boolean {
    return this.#options.serviceNamespaces.synced && this.#stores().every((store) => store.synced);
  }

  /** Not for namespaces added later. Rejects with CodedError `StoreClosed` if closed first. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    const stop = signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal;
    stop.throwIfAborted();
    await this.#options.serviceNamespaces.whenSynced(stop);
    await Promise.all(this.#stores().map((store) => store.whenSynced(stop)));
  }

  /** Of the oldest watch. */
  get ageMs(): number {
    return Math.max(this.#options.serviceNamespaces.ageMs, ...this.#stores().map((store) => store.ageMs));
  }

  /** Refusals first. */
  get failing(): StoreFailure | undefined {
    const failures = this.#stores().flatMap(({ failing }) => failing ?? []);
    return failures.find(({ refused }) => refused !== undefined) ?? failures[0];
  }

  onRefusal(listener: () => void): () => void {
    const subscription = (): void => listener();
    this.#refusalListeners.add(subscription);
    return () => void this.#refusalListeners.delete(subscription);
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(new CodedError('StoreClosed', `the store of ${this.resource.plural} was closed`));
    this.#unsubscribe();
    this.#listeners.clear();
    this.#listedListeners.clear();
    this.#refusalListeners.clear();
    for (const open of this.#open.values()) release(open);
    this.#open.clear();
  }

  #stores(): Store<T>[] {
    return [...this.#open.values()].map(({ handle }) => handle.store);
  }

  #namespaceOf({ namespace, serviceNamespace }: ServiceNamespaceView): string | undefined {
    return namespace === this.#options.clusterNamespace ? serviceNamespace : undefined;
  }

  #use(namespace: string, user: string): void {
    const existing = this.#open.get(namespace);
    if (existing) {
      existing.users.add(user);
      return;
    }
    const handle = this.#options.cluster.watch({ ...this.#options.spec, namespace });
    const stopRefusals = handle.store.onRefusal(() => this.#notifyRefusal());
    const open: OpenNamespace<T> = { handle, users: new Set([user]), unsubscribes: new Map(), stopRefusals };
    this.#open.set(namespace, open);
    for (const listener of this.#listeners) this.#attach(open, listener);
    handle.store.whenSynced(this.#closed.signal).then(
      () => {
        if (this.#open.get(namespace) !== open) return;
        for (const listener of [...this.#listedListeners]) listener(namespace);
      },
      () => undefined,
    );
  }

  #unuse(namespace: string, user: string): void {
    const open = this.#open.get(namespace);
    if (!open?.users.delete(user) || open.users.size > 0) return;
    this.#open.delete(namespace);
    const remaining = [...open.handle.store.list()];
    const listeners = [...open.unsubscribes.keys()];
    release(open);
    for (const before of remaining) {
      for (const listener of listeners) listener({ type: 'deleted', key: before.key, before, inferred: true });
    }
    this.#notifyRefusal();
  }

  #notifyRefusal(): void {
    for (const listener of [...this.#refusalListeners]) listener();
  }

  #attach({ handle, unsubscribes }: OpenNamespace<T>, listener: Listener<T>): void {
    unsubscribes.set(listener, handle.store.subscribe(listener));
  }
}

function release<T extends Projected>({ handle, unsubscribes, stopRefusals }: OpenNamespace<T>): void {
  stopRefusals();
  for (const unsubscribe of unsubscribes.values()) unsubscribe();
  handle.release();
}
