import { stringify } from 'yaml';
import { inlineCredentials } from '../../../src/kube/inline-kubeconfig.ts';

/** A kubeconfig with inline data and invalid credentials. */
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
 * Resolves after pending reads of kubeconfigs: reading one loads a module, which needs event loop turns that a simulated clock does not
 * control.
 */
export async function kubeconfigsAreRead(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    await inlineCredentials(simulatedKubeconfig('pace'));
  }
  await new Promise((resolve) => setImmediate(resolve));
}
