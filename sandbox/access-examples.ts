import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { userRoles } from './installation.ts';
import type { PlaneClient } from './plane-client.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The namespace of the examples. */
export const namespace = 'payments';
/** The files that the demo applies, from the root of the repository. */
export const accessExamples = ['workload', 'rbac', 'templates', 'approvals'].map((name) => `examples/${name}.yaml`);

/** The paths of the kubeconfigs of the people in the demo. */
export interface People {
  /** May request access. */
  readonly alice: string;
  /** May request access, but belongs to no group that a template allows. */
  readonly bob: string;
  /** May request access, and approve requests of others. */
  readonly carol: string;
}

/** Applies the examples, lets carol vote, and resolves to the kubeconfigs once the templates are ready. */
export async function applyAccessExamples(plane: PlaneClient): Promise<People> {
  for (const file of accessExamples) await plane.kubectl(['apply', '-f', `${root}${file}`]);
  await plane.kubectl(['rollout', 'status', '-n', namespace, 'deployment/payments', '--timeout=60s']);
  const roles = { apiVersion: 'v1', kind: 'List', items: await userRoles(plane) };
  await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(roles) });
  await plane.kubectl(['apply', '-f', '-'], { input: permissions });
  const ready = ['--for=jsonpath={.status.ready}=true', '--timeout=30s'];
  await plane.kubectl(['wait', '-n', namespace, 'podaccesstemplates,execaccesstemplates', '--all', ...ready]);
  const [alice, bob, carol] = await Promise.all([
    plane.kubeconfigFor('alice', ['devs']),
    plane.kubeconfigFor('bob', ['qa']),
    plane.kubeconfigFor('carol', ['devs']),
  ]);
  return { alice, bob, carol };
}

/**
 * The role of requesters covers only devs. With the first RoleBinding, drawbridge denies bob's request, and not the API server. With the
 * second, carol may vote about requests through the templates of the namespace.
 */
const permissions = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bob-may-request, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: request-access}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: carol-approves, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: drawbridge-approver}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
`;

/**
 * Lets the feature notify, which runs, send carol a mail about each request. `linkBase`: of the link in the mail. In a real cluster, the
 * credentials of the mail server are in a Secret.
 */
export async function tellByMail(plane: PlaneClient, address: string, linkBase?: string): Promise<void> {
  const provider = {
    apiVersion: 'access.drawbridge.dev/v1alpha1',
    kind: 'NotificationProvider',
    metadata: { name: 'mail', namespace },
    spec: {
      ...{ type: 'Email', address, sender: 'drawbridge@example.org', channel: 'carol@example.org' },
      caBundle: plane.authority.certificate,
      ...(linkBase === undefined ? {} : { linkBase }),
    },
  };
  const subscription = {
    apiVersion: 'access.drawbridge.dev/v1alpha1',
    kind: 'NotificationSubscription',
    metadata: { name: 'carol', namespace },
    spec: { providerRef: { name: 'mail' }, events: ['requested', 'extension.requested'] },
  };
  const input = JSON.stringify({ kind: 'List', apiVersion: 'v1', items: [provider, subscription] });
  await plane.kubectl(['apply', '-f', '-'], { input });
  const ready = ['--for=condition=Ready', '--timeout=30s'];
  await plane.kubectl(['wait', '-n', namespace, 'notificationsubscriptions/carol', ...ready]);
}

/** What the templates of examples/without-exec.yaml hand out: a file for `--grantable`. */
export async function writeGrantable(plane: PlaneClient): Promise<string> {
  const file = join(plane.directory, 'grantable.json');
  await writeFile(file, JSON.stringify(grantable));
  return file;
}

const grantable = [
  { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get', 'create'] },
];

/** Applies the templates without exec. The server runs with the file of `writeGrantable`; it must also hold what it grants. */
export async function applyTemplatesWithoutExec(plane: PlaneClient, serverUser: string): Promise<void> {
  const rights = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'grantable', namespace },
    rules: grantable,
  };
  await plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(rights) });
  await plane.kubectl([
    'create',
    'rolebinding',
    'grantable',
    '-n',
    namespace,
    '--role=grantable',
    `--user=${serverUser}`,
  ]);
  await plane.kubectl(['apply', '-f', `${root}examples/without-exec.yaml`]);
}

/** The commands with which alice tries access in another terminal, carol approves, bob is denied, and an administrator looks. */
export function commandsToTry(
  plane: Pick<PlaneClient, 'binaries' | 'adminKubeconfig'>,
  { alice, bob, carol }: People,
): string[] {
  return [
    `cd ${root}`,
    `export PATH=${dirname(plane.binaries.kubectl)}:$PATH KUBECONFIG=${alice}   # alice is in group devs`,
    `drawbridge() { ${process.execPath} dist/client.cjs "$@"; }`,
    `drawbridge templates -n ${namespace}`,
    `drawbridge request pod payments-shell -n ${namespace} --for 30m --exec`,
    `export KUBECONFIG=${carol}   # carol of group devs may approve requests through each template that counts her approval, such as payments-debug, and deny others`,
    `drawbridge pending -n ${namespace}`,
    `export KUBECONFIG=${bob}   # bob is in group qa, which no template allows`,
    `drawbridge explain payments-shell -n ${namespace}`,
    `export KUBECONFIG=${plane.adminKubeconfig}   # the administrator, who may do everything`,
    `drawbridge who -n ${namespace} --all`,
  ];
}
