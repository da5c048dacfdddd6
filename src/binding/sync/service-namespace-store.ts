import { nameOf } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Projected, Store, StoreSpec } from '../../kube/store.ts';
import type { ServiceNamespaceView } from '../stores/provider-stores.ts';
import { WatchSet } from '../stores/watch-set.ts';

export interface ServiceNamespaceStoreOptions<T extends Projected> {
  readonly cluster: Cluster;
  readonly clusterNamespace: string;
  readonly serviceNamespaces: Store<ServiceNamespaceView>;
  readonly spec: Omit<StoreSpec<T>, 'namespace'>;
}

/** A kind in all service namespaces: a watch for each while an APIServiceNamespace names it. */
export class ServiceNamespaceStore<T extends Projected> extends WatchSet<T> {
  readonly #options: ServiceNamespaceStoreOptions<T>;
  /** Keys of the APIServiceNamespaces that name a namespace. */
  readonly #users = new Map<string, Set<string>>();
  readonly #unsubscribe: () => void;

  constructor(options: ServiceNamespaceStoreOptions<T>) {
    super(options.cluster, options.spec);
    this.#options = options;
    this.#unsubscribe = options.serviceNamespaces.subscribe((event) => {
      const before = 'before' in event ? this.#namespaceOf(event.before) : undefined;
      const now = 'now' in event ? this.#namespaceOf(event.now) : undefined;
      if (before === now) return;
      if (now !== undefined) this.#use(now, event.key);
      if (before !== undefined) this.#unuse(before, event.key);
    });
  }

  override get(key: string): T | undefined {
    return this.#storeOf(key)?.get(key);
  }

  override isListed(key: string): boolean {
    return this.#storeOf(key)?.synced ?? false;
  }

  override get synced(): boolean {
    return this.#options.serviceNamespaces.synced && super.synced;
  }

  override get ageMs(): number {
    return Math.max(this.#options.serviceNamespaces.ageMs, super.ageMs);
  }

  override close(): void {
    this.#unsubscribe();
    super.close();
  }

  #storeOf(key: string): Store<T> | undefined {
    return this.store(nameOf(key).namespace ?? '');
  }

  #namespaceOf({ namespace, serviceNamespace }: ServiceNamespaceView): string | undefined {
    return namespace === this.#options.clusterNamespace ? serviceNamespace : undefined;
  }

  #use(namespace: string, user: string): void {
    const users = this.#users.get(namespace) ?? new Set();
    this.#users.set(namespace, users.add(user));
    if (users.size === 1) this.begin(namespace, { namespace });
  }

  #unuse(namespace: string, user: string): void {
    const users = this.#users.get(namespace);
    if (!users?.delete(user) || users.size > 0) return;
    this.#users.delete(namespace);
    this.end(namespace);
  }
}
