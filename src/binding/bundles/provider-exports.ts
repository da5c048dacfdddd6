import { apiServiceExports, clusterBindingName, clusterBindings } from '../../api/binding/names.ts';
import { namespaces } from '../../api/resources.ts';
import { ApiError } from '../../kube/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';

/** A healthy watch hears of the API server at least every 30 s. */
const staleMs = 60_000;

/** Whether the watch of the exports can be relied on now. */
export const isWatched = ({ stores }: ProviderSession): boolean =>
  stores.exports.synced && stores.exports.ageMs <= staleMs;

/** The names of the exports as the watch knows them. */
export const watchedExports = ({ stores }: ProviderSession): Set<string> =>
  new Set([...stores.exports.list()].map(({ name }) => name));

/** The same by asking, for when the watch is of no use, or to be sure. */
export async function listedExports(session: ProviderSession, signal: AbortSignal): Promise<Set<string>> {
  const { items } = await session.client.list(apiServiceExports, { namespace: session.clusterNamespace, signal });
  return new Set(items.map(({ metadata }) => metadata.name));
}

/**
 * Why what is missing in the cluster namespace proves nothing: it is going as a whole, is not the one it was, or has lost its
 * ClusterBinding. Undefined when it is in order. Rejects when there is no answer.
 */
export async function doubtAbout(session: ProviderSession, signal: AbortSignal): Promise<string | undefined> {
  const { client, clusterNamespace: namespace, clusterNamespaceUid } = session;
  try {
    await client.get(clusterBindings, { namespace, name: clusterBindingName }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError && [403, 404].includes(error.code))) throw error;
    const what = `ClusterBinding ${clusterBindingName}`;
    return error.code === 403
      ? `its ${what} may not be read: ${error.message}`
      : `its namespace ${namespace} holds no ${what} any more`;
  }
  try {
    const { metadata } = await client.get(namespaces, { name: namespace }, { signal });
    if (metadata.deletionTimestamp !== undefined) return `its namespace ${namespace} is being deleted`;
    if (clusterNamespaceUid !== undefined && metadata.uid !== clusterNamespaceUid) {
      return `its namespace ${namespace} is not the one that it was`;
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The namespace need not be readable.
    if (error.code === 403) return undefined;
    if (error.code === 404) return `its namespace ${namespace} is gone`;
    throw error;
  }
}
