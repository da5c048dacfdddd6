import { clusterBindingName, clusterBindings } from '../../api/binding/names.ts';
import { describe } from '../../kit/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isForbidden, isNotFound } from '../../kube/errors.ts';

/** A provider as a kubeconfig opens it. */
interface Candidate {
  readonly cluster: Cluster;
  readonly server: string;
  readonly clusterNamespace: string;
}

interface Serving extends Candidate {
  readonly clusterNamespaceUid: string | undefined;
}

/**
 * Why the candidate must not take the place of what serves, or undefined when it may: its credentials are accepted, and it is the same
 * provider as far as can be told. Rejects when `signal` aborts and for nothing else.
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
      .catch(unlessNotFound);
    uid = await cluster.identity(namespace).catch(unlessForbidden);
  } catch (error) {
    signal.throwIfAborted();
    return isNotFound(error)
      ? `there is no namespace ${namespace} at ${server}`
      : `${server} does not accept it: ${describe(error)}`;
  }
  const before = serving.clusterNamespaceUid;
  if (uid === undefined || before === undefined || uid === before) return undefined;
  return (
    `namespace ${namespace} at ${server} is not namespace ${serving.clusterNamespace} at ${serving.server}, which the bindings ` +
    'were made with: it belongs to another provider. Put the former kubeconfig back, or delete the bindings and bind again'
  );
}

/** Who may ask for an object that is not there is somebody. */
function unlessNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** The namespace need not be readable; it is then taken on trust. */
function unlessForbidden(error: unknown): undefined {
  if (!isForbidden(error)) throw error;
}
