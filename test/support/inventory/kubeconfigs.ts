import { stringify } from 'yaml';
import { inlineCredentials } from '../../../src/kube/inline-kubeconfig.ts';

/** A kubeconfig with everything inline; it opens nothing. */
export function simulatedKubeconfig(
  user: string,
  fields: Readonly<Record<string, unknown>> = { token: `of-${user}` },
): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'managed', cluster: { server: 'https://managed.example.org' } }],
    users: [{ name: user, user: fields }],
    contexts: [{ name: 'managed', context: { cluster: 'managed', user } }],
    'current-context': 'managed',
  });
}

/**
 * Resolves once whoever reads a kubeconfig at this moment has done so: reading one loads a module, which takes turns of the event loop
 * that a simulated clock knows nothing of.
 */
export async function kubeconfigsAreRead(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    await inlineCredentials(simulatedKubeconfig('pace'));
  }
  await new Promise((resolve) => setImmediate(resolve));
}
