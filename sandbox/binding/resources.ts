import type { KubeObject, Resource } from '../../src/api/object.ts';
import type { Client } from '../../src/kube/client.ts';

const rbac = (plural: string, kind: string): Resource => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});

export const clusterRoles = rbac('clusterroles', 'ClusterRole');
export const clusterRoleBindings = rbac('clusterrolebindings', 'ClusterRoleBinding');

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export const rule = (group: string, resources: readonly string[], ...verbs: string[]): Rule => ({
  apiGroups: [group],
  resources,
  verbs,
});

const rbacApi = 'rbac.authorization.k8s.io/v1';
export const rbacGroup = 'rbac.authorization.k8s.io';

export const clusterRole = (
  name: string,
  rules: readonly Rule[],
  labels: Readonly<Record<string, string>> = {},
): KubeObject => ({ apiVersion: rbacApi, kind: 'ClusterRole', metadata: { name, labels: { ...labels } }, rules });

export const roleBinding = (
  where: { readonly namespace?: string; readonly name: string },
  roleRef: { readonly kind: 'ClusterRole' | 'Role'; readonly name: string },
  subjects: readonly object[],
): KubeObject => ({
  apiVersion: rbacApi,
  kind: where.namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { ...where },
  roleRef: { apiGroup: rbacGroup, ...roleRef },
  subjects,
});

/** Applies the object, even if another client created it. */
export async function put(client: Client, resource: Resource, object: KubeObject): Promise<KubeObject> {
  return client.apply(resource, object, { fieldManager: 'backend', force: true });
}
