import { accessTemplate, targetOf } from './access-manifests.ts';
import type { Manifest } from './access-requests.ts';

/**
 * A Deployment behind a Service, with its own ServiceAccount and image pull secret, and a PodAccessTemplate for it. A NetworkPolicy isolates
 * its egress. The policy selects by the label `zone`, or with `byApp` by the label that the Service selects by.
 */
export function isolatedWorkload(name: string, { byApp = false } = {}): Manifest[] {
  const labels = { app: name, zone: `${name}-closed` };
  const account = `${name}-robot`;
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: account },
      imagePullSecrets: [{ name: `${name}-registry` }],
    } as Manifest,
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: account,
            containers: [{ name: 'app', image: 'busybox:1.37', args: ['sleep', 'infinity'] }],
          },
        },
      },
    },
    { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { selector: { app: name }, ports: [{ port: 80 }] } },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: `${name}-egress` },
      spec: {
        podSelector: { matchLabels: byApp ? { app: name } : { zone: `${name}-closed` } },
        policyTypes: ['Egress'],
        egress: [],
      },
    },
    accessTo(name, name),
  ];
}

/** A PodAccessTemplate with that name for a Deployment. */
export const accessTo = (name: string, deployment: string, more: object = {}): Manifest =>
  accessTemplate('PodAccessTemplate', name, { ...targetOf(deployment), ...more });
