import { stringify } from 'yaml';

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
