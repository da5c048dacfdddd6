import type { AccessStage } from './access-stage.ts';

/** Lets users approve, in the namespace of the stage, what any template opens. */
export async function letApprove(stage: AccessStage, ...users: readonly string[]): Promise<void> {
  const resources = ['podaccesstemplates', 'execaccesstemplates'];
  await stage.apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'approve' },
    rules: [
      { apiGroups: ['crds.wizardofoz.co'], resources, verbs: ['approve'] },
      { apiGroups: ['access.drawbridge.dev'], resources: ['accessvotes'], verbs: ['create'] },
    ],
  });
  const subjects = users.map((user) => `--user=${user}`);
  await stage.kubectl('create', 'rolebinding', 'approve', '--role=approve', ...subjects);
}
