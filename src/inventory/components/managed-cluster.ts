import type { Cluster } from '../../kube/cluster.ts';
import { inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { ComponentsDeps } from './deps.ts';

/** Opens the cluster of a kubeconfig for as long as `work` takes. Rejects as `inlineCredentials` does for a text that it refuses. */
export async function withCluster<T>(
  { connect }: Pick<ComponentsDeps, 'connect'>,
  kubeconfig: string,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const cluster = connect(await inlineCredentials(kubeconfig));
  try {
    return await work(cluster);
  } finally {
    await cluster.close();
  }
}
