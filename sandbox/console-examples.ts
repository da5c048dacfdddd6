import { applyAccessExamples, namespace } from './access-examples.ts';
import type { PlaneClient } from './plane-client.ts';

/** The paths of the kubeconfigs of the people who open a console. */
export interface ConsolePeople {
  /** Requests access. */
  readonly alice: string;
  /** Approves it. */
  readonly carol: string;
  /** Reads all requests, watches sessions, and verifies journals: in all namespaces. */
  readonly dave: string;
}

/** Applies the examples, and what the consoles show further. Resolves once the template is ready. `release`: the server's namespace. */
export async function applyConsoleExamples(plane: PlaneClient, release: string): Promise<ConsolePeople> {
  const { alice, carol } = await applyAccessExamples(plane);
  await plane.kubectl(['apply', '-n', namespace, '-f', '-'], { input: JSON.stringify(recordedTemplate) });
  const rights = { kind: 'List', apiVersion: 'v1', items: auditorRights(release) };
  await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(rights) });
  const ready = ['--for=jsonpath={.status.ready}=true', '--timeout=30s'];
  await plane.kubectl(['wait', '-n', namespace, `podaccesstemplate/${recordedTemplate.metadata.name}`, ...ready]);
  return { alice, carol, dave: await plane.kubeconfigFor('dave', ['auditors']) };
}

/** A colleague approves, and sessions go through the gateway, which records them. */
export const recordedTemplate = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'payments-recorded' },
  spec: {
    accessConfig: {
      allowedGroups: ['devs'],
      defaultDuration: '1h',
      maxDuration: '2h',
      approvals: { all: [{ name: 'peer', groups: ['devs', 'sre'] }] },
      reason: {
        minLength: 10,
        pattern: '^(INC|CHG)-[0-9]+',
        prompt: 'the ticket, and why',
        link: 'https://tickets.example/{match}',
      },
      extension: { times: 2, total: '6h', approvals: 'None' },
      session: { via: 'Gateway', record: 'Required', idleAfter: '15m' },
    },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    controllerTargetMutationConfig: { command: ['sh', '-c', 'sleep 86400'] },
  },
} as const;

const apiGroup = 'rbac.authorization.k8s.io';
const apiVersion = `${apiGroup}/v1`;
const subjects = [{ apiGroup, kind: 'Group', name: 'auditors' }];

/** Lets the group auditors see everything of all namespaces, and verify the journal of the server in `release`. */
export const auditorRights = (release: string) => [
  ...['drawbridge-viewer', 'drawbridge-session-auditor'].map((name) => ({
    apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name: `auditors-${name}` },
    roleRef: { apiGroup, kind: 'ClusterRole', name },
    subjects,
  })),
  {
    apiVersion,
    kind: 'Role',
    metadata: { name: 'verify-journals', namespace: release },
    rules: [
      { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
    ],
  },
  {
    apiVersion,
    kind: 'RoleBinding',
    metadata: { name: 'auditors-verify-journals', namespace: release },
    roleRef: { apiGroup, kind: 'Role', name: 'verify-journals' },
    subjects,
  },
];
