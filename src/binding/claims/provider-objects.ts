import { keyOf, nameOf, type Resource } from '../../api/object.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import type { StoreFailure } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { byServiceNamespace, type ServiceNamespaceView } from '../stores/provider-stores.ts';
import { ServiceNamespaceStore } from '../sync/service-namespace-store.ts';
import type { Problems } from '../sync-engine/problems.ts';
import { byName, byNamespace, type ClaimedView, claimedIndexes, claimedView } from './claimed-view.ts';
import { Deletions } from './deletions.ts';
import type { ServiceNamespace } from './plan.ts';

export interface ProviderObjectsOptions {
  readonly session: ProviderSession;
  readonly resource: Resource;
  readonly clock: Clock;
  readonly problems: Problems;
  readonly consumerKeys: (namespace: string) => Iterable<string>;
}

/** Until an unlisted service namespace is a problem: providers grant permissions in seconds. */
const gracePeriodMs = 10_000;

/**
 * The provider's objects of one claimed kind, under consumer keys. Each service namespace has its
 * own watch, because a provider may grant permissions namespace by namespace.
 */
export class ProviderObjects {
  readonly #options: ProviderObjectsOptions;
  readonly #store: ServiceNamespaceStore<ClaimedView>;
  readonly deletions = new Deletions();
  readonly #stopObserving: () => void;
  readonly #gracePeriods = new Map<string, Cancel>();

  constructor(options: ProviderObjectsOptions) {
    this.#options = options;
    const { session, resource } = options;
    this.#store = new ServiceNamespaceStore({
      cluster: session.cluster,
      clusterNamespace: session.clusterNamespace,
      serviceNamespaces: session.stores.serviceNamespaces,
      spec: { resource, project: claimedView, indexes: claimedIndexes },
    });
    this.#stopObserving = this.#store.subscribe((event) => {
      for (const key of this.#consumerKeysOf(event.key)) this.deletions.observe(key, event);
    });
  }

  /** They do not wait for lists. `onEvent`: called for each consumer key that they enqueue. */
  sources(onEvent: (key: string) => void): Source[] {
    const { consumerKeys, session } = this.#options;
    const { serviceNamespaces } = session.stores;
    const keysIn = (namespace: string): string[] => [...consumerKeys(namespace), ...this.keysIn(namespace)];
    return [
      fromSubscription('provider', this.#store, (event) => {
        const keys = this.#consumerKeysOf(event.key);
        for (const key of keys) onEvent(key);
        return keys;
      }),
      fromSubscription(
        'service namespace',
        { subscribe: (listener) => this.#store.onListed(listener) },
        (serviceNamespace: string) => {
          this.#endGracePeriod(serviceNamespace);
          return this.#mappingsTo(serviceNamespace).flatMap(({ name }) => keysIn(name));
        },
      ),
      fromSubscription('service namespace', serviceNamespaces, (event) => {
        const view = 'now' in event ? event.now : event.before;
        if (view.namespace !== session.clusterNamespace) return [];
        this.#startGracePeriod(view, event.type !== 'deleted');
        return keysIn(view.name);
      }),
    ];
  }

  serviceNamespace(namespace: string): ServiceNamespace {
    const { clusterNamespace, stores } = this.#options.session;
    const found = stores.serviceNamespaces.get(keyOf({ namespace: clusterNamespace, name: namespace }));
    if (!found) return { kind: 'none' };
    const { deleting, serviceNamespace } = found;
    return deleting || serviceNamespace === undefined ? { kind: 'pending' } : { kind: 'ready', name: serviceNamespace };
  }

  get synced(): boolean {
    return this.#store.synced;
  }

  /** If not, the store may lack objects of this consumer namespace that exist. */
  isListed(namespace: string): boolean {
    const service = this.serviceNamespace(namespace);
    return service.kind === 'ready' && this.#store.isListed(keyOf({ namespace: service.name, name: '' }));
  }

  get(namespace: string, name: string): ClaimedView | undefined {
    const service = this.serviceNamespace(namespace);
    return service.kind === 'ready' ? this.#store.get(keyOf({ namespace: service.name, name })) : undefined;
  }

  get copies(): number {
    return [...this.#store.list()].filter(({ owner }) => owner === 'consumer').length;
  }

  keys(): string[] {
    return this.#consumerKeysOfAll([...this.#store.list()]);
  }

  keysIn(namespace: string): string[] {
    const service = this.serviceNamespace(namespace);
    if (service.kind !== 'ready') return [];
    return this.#store.byIndex(byNamespace, service.name).map(({ name }) => keyOf({ namespace, name }));
  }

  keysNamed(name: string): string[] {
    return this.#consumerKeysOfAll(this.#store.byIndex(byName, name));
  }

  /** Of the oldest watch. */
  get ageMs(): number {
    return this.#store.ageMs;
  }

  get failing(): StoreFailure | undefined {
    return this.#store.failing;
  }

  onRefusal(listener: () => void): () => void {
    return this.#store.onRefusal(listener);
  }

  close(): void {
    this.#stopObserving();
    for (const cancel of this.#gracePeriods.values()) cancel();
    this.#store.close();
  }

  #consumerKeysOf(providerKey: string): string[] {
    const { namespace = '', name } = nameOf(providerKey);
    return this.#mappingsTo(namespace).map((view) => keyOf({ namespace: view.name, name }));
  }

  #consumerKeysOfAll(views: readonly ClaimedView[]): string[] {
    return views.flatMap(({ key }) => this.#consumerKeysOf(key));
  }

  /** Several consumer namespaces may map to one service namespace. */
  #mappingsTo(serviceNamespace: string): ServiceNamespaceView[] {
    const { clusterNamespace, stores } = this.#options.session;
    const found = stores.serviceNamespaces.byIndex(byServiceNamespace, serviceNamespace);
    return found.filter(({ namespace }) => namespace === clusterNamespace);
  }

  #startGracePeriod({ serviceNamespace, name }: ServiceNamespaceView, exists: boolean): void {
    const { clock, problems, resource } = this.#options;
    if (serviceNamespace === undefined) return;
    this.#endGracePeriod(serviceNamespace);
    if (!exists || this.isListed(name)) return;
    const cancel = clock.schedule(gracePeriodMs, () => {
      if (this.isListed(name)) return;
      const message = `the konnector has not listed the ${resource.plural} in this namespace of the provider yet; if the provider is reachable, ask it to grant permission for the claims of its export`;
      problems.set(serviceNamespace, { rank: 'forbidden', message });
    });
    this.#gracePeriods.set(serviceNamespace, cancel);
  }

  #endGracePeriod(serviceNamespace: string): void {
    this.#gracePeriods.get(serviceNamespace)?.();
    this.#gracePeriods.delete(serviceNamespace);
    this.#options.problems.clear(serviceNamespace);
  }
}
