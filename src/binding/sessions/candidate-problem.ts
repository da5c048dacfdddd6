import { clusterBindingName, clusterBindings } from '../../api/binding/names.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isForbidden, isNotFound } from '../../kube/errors.ts';

interface Candidate {
  readonly cluster: Cluster;
  readonly server: string;
  readonly clusterNamespace: string;
}

interface Serving extends Candidate {
  /** Undefined until it has been read, or if that is forbidden. */
  readonly clusterNamespaceUid: string | undefined;
}

/** The namespace must exist and have the same uid, as far as either session may read it. */
export async function candidateProblem(
  candidate: Candidate,
  serving: Serving,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { cluster, clusterNamespace: namespace, server } = candidate;
  let uid: string | undefined;
  try {
    await cluster.client
      .get(clusterBindings, { namespace, name: clusterBindingName }, { signal })
      .catch(ignoreNotFound);
    uid = await cluster.identity(namespace).catch(ignoreForbidden);
  } catch (error) {
    signal.throwIfAborted();
    return isNotFound(error)
      ? `namespace ${namespace} does not exist at ${server}; ask the provider to create it`
      : `a read from ${server} failed: ${describe(error)}; the server retries; if the provider denies the read, ask it for a kubeconfig that permits it`;
  }
  const before = serving.clusterNamespaceUid;
  if (uid === undefined || before === undefined || uid === before) return undefined;
  return (
    `namespace ${namespace} at ${server} has another uid than namespace ${serving.clusterNamespace} at ${serving.server}, which the bindings use: ` +
    'the provider deleted and created it again, or it belongs to another provider; restore the previous kubeconfig, or delete the bindings, with the objects of the kinds that they bound, and bind again'
  );
}

/** A 404 proves that the credentials are accepted. */
function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** Without permission to read the namespace, the uids are not compared. */
function ignoreForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}
