import type { Resource } from '../../api/object.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BoundSchemaView } from '../stores/provider-stores.ts';
import { WatchSet } from '../stores/watch-set.ts';
import type { Isolation } from './isolation.ts';
import { ServiceNamespaceStore } from './service-namespace-store.ts';
import { copyProjection, type SyncedObject } from './synced-object.ts';

/** The provider's objects of a bound kind, at least where copies may be. */
export type Copies = WatchSet<SyncedObject>;

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
  const { cluster, clusterNamespace, stores } = session;
  const spec = { resource, project: copyProjection(clusterNamespace), followsSchema: true };
  if (schema.scope === 'Namespaced' && schema.informerScope === 'Namespaced') {
    const { serviceNamespaces } = stores;
    return new ServiceNamespaceStore({ cluster, clusterNamespace, serviceNamespaces, spec });
  }
  const { providerNamespace: namespace } = isolation;
  const copies = new WatchSet(cluster, spec);
  copies.begin('copies', namespace === undefined ? {} : { namespace });
  return copies;
}
