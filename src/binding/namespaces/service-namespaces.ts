import { apiServiceNamespaces } from '../../api/binding/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { CallOptions } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';

const underWay = new WeakMap<ProviderSession, Map<string, Promise<void>>>();

/**
 * Requests a service namespace: creates an APIServiceNamespace with the name of the consumer namespace. The session's store shows the
 * resulting namespace. Concurrent requests for one namespace share one call.
 *
 * It has no owner reference: if one export owned it, its deletion would delete the objects of all other exports.
 */
export function requestServiceNamespace(
  session: ProviderSession,
  namespace: string,
  options: CallOptions = {},
): Promise<void> {
  const calls = underWay.get(session) ?? new Map<string, Promise<void>>();
  underWay.set(session, calls);
  const running = calls.get(namespace);
  if (running) return running;
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
