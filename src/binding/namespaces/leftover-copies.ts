import { clusterNamespaceAnnotation } from '../../api/binding/names.ts';
import { own } from '../../kit/json-value.ts';
import type { CallOptions } from '../../kube/client.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { consumerResource, syncVersion } from '../sync/sync-version.ts';

/** How many copies of ours are in a namespace of the provider. Live reads; rejects when there is no clear answer. */
export async function leftoverCopies(
  session: ProviderSession,
  serviceNamespace: string,
  options: CallOptions,
): Promise<number> {
  const { client, clusterNamespace, stores } = session;
  let copies = 0;
  for (const exported of stores.exports.list()) {
    for (const { group, resource } of exported.resources) {
      const schema = stores.schemas.get(`${clusterNamespace}/${resource}.${group || 'core'}`);
      const version = schema?.scope === 'Namespaced' ? syncVersion(schema, exported) : undefined;
      if (!schema || !version) continue;
      const listOptions = { ...options, namespace: serviceNamespace };
      const { items } = await client.list(consumerResource(schema, version.name), listOptions);
      copies += items.filter(
        ({ metadata }) => own(metadata.annotations, clusterNamespaceAnnotation) === clusterNamespace,
      ).length;
    }
  }
  return copies;
}
