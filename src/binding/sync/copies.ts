import type { Resource } from '../../api/object.ts';
import type { Store, StoreEvent } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BoundSchemaView } from '../stores/provider-stores.ts';
import type { Isolation } from './isolation.ts';
import { ServiceNamespaceStore } from './service-namespace-store.ts';
import { copyProjection, type SyncedObject } from './synced-object.ts';

/** The provider's objects of a bound kind, at least where copies may be. */
export interface Copies {
  readonly store: Pick<Store<SyncedObject>, 'get' | 'list' | 'synced' | 'ageMs' | 'failing' | 'onRefusal'>;
  /** Whether a missing entry in `store` means a missing object. */
  isListed(key: string): boolean;
  subscribe(listener: (event: StoreEvent<SyncedObject>) => void): () => void;
  /** `isListed` may have become true for more keys. */
  onListed(listener: () => void): () => void;
  close(): void;
}

/**
 * One watch for each service namespace if kind and `informerScope` are Namespaced; otherwise one
 * for the only namespace with copies, or the whole cluster.
 */
export function openCopies(
  session: ProviderSession,
  schema: BoundSchemaView,
  isolation: Isolation,
  resource: Resource,
): Copies {
  const spec = { resource, project: copyProjection(session), followsSchema: true };
  if (schema.scope === 'Namespaced' && schema.informerScope === 'Namespaced') {
    const { cluster, clusterNamespace, stores } = session;
    const store = new ServiceNamespaceStore({
      cluster,
      clusterNamespace,
      serviceNamespaces: stores.serviceNamespaces,
      spec,
    });
    return {
      store,
      isListed: (key) => store.isListed(key),
      subscribe: (listener) => store.subscribe(listener),
      onListed: (listener) => store.onListed(() => listener()),
      close: () => store.close(),
    };
  }
  const { providerNamespace } = isolation;
  const { store, release } = session.cluster.watch(
    providerNamespace === undefined ? spec : { ...spec, namespace: providerNamespace },
  );
  return {
    store,
    isListed: () => store.synced,
    subscribe: (listener) => store.subscribe(listener),
    onListed: (listener) => onSynced(store, listener),
    close: release,
  };
}

export function onSynced(store: Pick<Store<never>, 'whenSynced'>, listener: () => void): () => void {
  const stop = new AbortController();
  store.whenSynced(stop.signal).then(listener, () => undefined);
  return () => stop.abort();
}
