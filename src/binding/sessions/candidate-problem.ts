import { clusterBindingName, clusterBindings } from '../../api/binding/names.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isForbidden, isNotFound } from '../../kube/errors.ts';

/** A connection to a provider, from one kubeconfig. */
interface Candidate {
  readonly cluster: Cluster;
  readonly server: string;
  readonly clusterNamespace: string;
}

/** The session that the new one would replace. */
interface Serving extends Candidate {
  /** Undefined until it has been read, or if reading it is forbidden. */
  readonly clusterNamespaceUid: string | undefined;
}

/**
 * Why the candidate must not replace the serving session; undefined if it may. The API server must accept the candidate's credentials and
 * allow a read of the ClusterBinding, which need not exist. Unless the API server denies a read of the candidate's namespace (403), that
 * namespace must exist, and its uid must be that of the serving session if that is known. Rejects only when `signal` aborts.
 */
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

/** A 404 proves that the API server accepts the credentials. */
function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** The candidate may lack permission to read the namespace. If it does, the uids are not compared. */
function ignoreForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}
