import { apiServiceNamespaces } from '../../api/binding/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { CallOptions } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';

/** By session and consumer namespace: the current call. */
const pendingCalls = new WeakMap<ProviderSession, Map<string, Promise<void>>>();

/**
 * Requests a service namespace: creates an APIServiceNamespace with the name of the consumer namespace, unless it exists. Once the provider
 * has created the service namespace, the session's store shows it. Concurrent requests for one namespace share one call, with the options
 * of the first request; so an abort of the first request rejects all of them. Rejects with the error of the call.
 *
 * The APIServiceNamespace has no owner reference, because several exports share it: if one export owned it, a delete of that export would
 * delete the objects of all exports.
 */
export function requestServiceNamespace(
  session: ProviderSession,
  namespace: string,
  options: CallOptions = {},
): Promise<void> {
  const calls = pendingCalls.get(session) ?? new Map<string, Promise<void>>();
  pendingCalls.set(session, calls);
  const pending = calls.get(namespace);
  if (pending) return pending;
  const call = create(session, namespace, options).finally(() => calls.delete(namespace));
  calls.set(namespace, call);
  return call;
}

async function create(session: ProviderSession, namespace: string, options: CallOptions): Promise<void> {
  const { client, clusterNamespace } = session;
  try {
    await client.create(
      apiServiceNamespaces,
      {
        apiVersion: apiVersionOf(apiServiceNamespaces),
        kind: apiServiceNamespaces.kind,
        metadata: { namespace: clusterNamespace, name: namespace },
        spec: {},
      },
      options,
    );
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
