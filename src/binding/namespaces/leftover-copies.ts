import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { apiServiceExports, clusterNamespaceAnnotation } from '../../api/binding/names.ts';
import { own } from '../../kit/json-value.ts';
import type { CallOptions } from '../../kube/client.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { consumerResource, syncVersion } from '../sync/sync-version.ts';

/**
 * How many copies of ours are in a namespace of the provider. Live reads; rejects when there is no clear answer, as while the provider
 * exports something that has not been listed or cannot be read here.
 */
export async function leftoverCopies(
  session: ProviderSession,
  serviceNamespace: string,
  options: CallOptions,
): Promise<number> {
  const { client, clusterNamespace, stores } = session;
  const { items: exports } = await client.list(apiServiceExports, { ...options, namespace: clusterNamespace });
  let copies = 0;
  for (const { metadata } of exports) {
    const exported = stores.exports.get(`${clusterNamespace}/${metadata.name}`);
    if (!exported || exported.unreadable !== undefined)
      throw new Error(`what export ${metadata.name} holds is not known`);
    for (const resource of exported.resources) {
      const schema = stores.schemas.get(`${clusterNamespace}/${boundSchemaName(resource)}`);
      if (!schema) throw new Error(`BoundSchema ${boundSchemaName(resource)} is not known`);
      if (schema.scope !== 'Namespaced') continue;
      const version = syncVersion(schema, exported) ?? schema.versions.find(({ served }) => served);
      if (!version) continue;
      const listOptions = { ...options, namespace: serviceNamespace };
      const { items } = await client.list(consumerResource(schema, version.name), listOptions);
      copies += items.filter(
        ({ metadata }) => own(metadata.annotations, clusterNamespaceAnnotation) === clusterNamespace,
      ).length;
    }
  }
  return copies;
}
