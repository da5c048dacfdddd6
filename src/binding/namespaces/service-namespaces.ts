import { apiServiceNamespaces } from '../../api/binding/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { CallOptions } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';

const pendingCalls = new WeakMap<ProviderSession, Map<string, Promise<void>>>();

/**
 * Creates the APIServiceNamespace unless it exists. Concurrent calls share the first, with its
 * abort. No owner reference: several exports share it, and deleting one would delete all objects.
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
