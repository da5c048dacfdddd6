import type { Manifest } from './access-requests.ts';

const rbac = 'rbac.authorization.k8s.io';

/** The part of the spec of a template that names its workload. */
export const targetOf = (name: string, kind = 'Deployment') => ({
  controllerTargetRef: { apiVersion: 'apps/v1', kind, name },
});

/** A template for the group devs. By default, for the Deployment payments. `accessConfig` adds to the allowed groups. */
export const accessTemplate = (
  kind: string,
  name: string,
  spec: object = targetOf('payments'),
  accessConfig: object = {},
): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind,
  metadata: { name },
  spec: { accessConfig: { allowedGroups: ['devs'], ...accessConfig }, ...spec },
});

export const sleepingPod = (labels: object) => ({
  metadata: { labels },
  spec: { containers: [{ name: 'app', image: 'busybox:1.37', args: ['sleep', 'infinity'] }] },
});

/** A workload whose pods sleep, and have its name as the label `app`. */
export const workload = (name: string, spec: object = {}, kind = 'Deployment'): Manifest => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: { selector: { matchLabels: { app: name } }, template: sleepingPod({ app: name }), ...spec },
});

export const role = (name: string, ...rules: readonly object[]): Manifest => ({
  apiVersion: `${rbac}/v1`,
  kind: 'Role',
  metadata: { name },
  rules,
});

export const roleBinding = (roleName: string, users: readonly string[], name = roleName): Manifest => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: rbac, kind: 'Role', name: roleName },
  subjects: users.map((user) => ({ apiGroup: rbac, kind: 'User', name: user })),
});

/** Lets users vote about the requests through all templates of a resource, such as `execaccesstemplates`. */
export const approverRights = (templates: string, ...users: readonly string[]): Manifest[] => [
  role(
    'approve',
    { apiGroups: ['access.drawbridge.dev'], resources: ['accessvotes'], verbs: ['create'] },
    { apiGroups: ['crds.wizardofoz.co'], resources: [templates], verbs: ['approve'] },
  ),
  roleBinding('approve', users),
];
