import { applyAccessExamples, namespace } from './access-examples.ts';
import type { PlaneClient } from './plane-client.ts';

/** The template of the consoles' story: a colleague approves, and sessions go through the gateway, which records them. */
export const consoleTemplate = 'payments-recorded';

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
  await plane.kubectl(['apply', '-f', '-'], { input: `${recorded}${auditor(release)}` });
  const ready = ['--for=jsonpath={.status.ready}=true', '--timeout=30s'];
  await plane.kubectl(['wait', '-n', namespace, `podaccesstemplate/${consoleTemplate}`, ...ready]);
  return { alice, carol, dave: await plane.kubeconfigFor('dave', ['auditors']) };
}

const recorded = `apiVersion: crds.wizardofoz.co/v1alpha1
kind: PodAccessTemplate
metadata: {name: ${consoleTemplate}, namespace: ${namespace}}
spec:
  accessConfig:
    allowedGroups: [devs]
    defaultDuration: 1h
    maxDuration: 2h
    approvals:
      all: [{name: peer, groups: [devs, sre]}]
    reason:
      minLength: 10
      pattern: '^(INC|CHG)-[0-9]+'
      prompt: 'the ticket, and why'
      link: https://tickets.example/{match}
    extension: {times: 2, total: 6h, approvals: None}
    session: {via: Gateway, record: Required, idleAfter: 15m}
  controllerTargetRef: {apiVersion: apps/v1, kind: Deployment, name: payments}
  controllerTargetMutationConfig:
    command: [sh, -c, 'sleep 86400']
`;

const rbac = 'rbac.authorization.k8s.io';
const auditor = (release: string): string => `---
apiVersion: ${rbac}/v1
kind: ClusterRoleBinding
metadata: {name: auditors-see-requests}
roleRef: {apiGroup: ${rbac}, kind: ClusterRole, name: drawbridge-viewer}
subjects: [{apiGroup: ${rbac}, kind: Group, name: auditors}]
---
apiVersion: ${rbac}/v1
kind: ClusterRoleBinding
metadata: {name: auditors-see-sessions}
roleRef: {apiGroup: ${rbac}, kind: ClusterRole, name: drawbridge-session-auditor}
subjects: [{apiGroup: ${rbac}, kind: Group, name: auditors}]
---
apiVersion: ${rbac}/v1
kind: Role
metadata: {name: verify-journals, namespace: ${release}}
rules:
  - {apiGroups: [''], resources: [configmaps, pods], verbs: [get, list]}
  - {apiGroups: [''], resources: [pods/log], verbs: [get]}
---
apiVersion: ${rbac}/v1
kind: RoleBinding
metadata: {name: auditors-verify-journals, namespace: ${release}}
roleRef: {apiGroup: ${rbac}, kind: Role, name: verify-journals}
subjects: [{apiGroup: ${rbac}, kind: Group, name: auditors}]
`;
