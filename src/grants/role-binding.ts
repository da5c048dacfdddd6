import { apiVersionOf, type KubeObject, type ObjectMeta } from '../api/object.ts';
import { roleBindings, roles } from '../api/resources.ts';

/** rbac/v1 Subject as the API stores it. */
export type RbacSubject =
  | { readonly kind: 'User' | 'Group'; readonly name: string; readonly apiGroup: 'rbac.authorization.k8s.io' }
  | { readonly kind: 'ServiceAccount'; readonly name: string; readonly namespace: string };

export const userSubject = (name: string): RbacSubject => ({
  kind: 'User',
  name,
  apiGroup: 'rbac.authorization.k8s.io',
});

export const groupSubject = (name: string): RbacSubject => ({
  kind: 'Group',
  name,
  apiGroup: 'rbac.authorization.k8s.io',
});

/** A RoleBinding to a Role of the same namespace; metadata is taken as it is. */
export function roleBindingOf(metadata: ObjectMeta, roleName: string, subjects: readonly RbacSubject[]): KubeObject {
  return {
    apiVersion: apiVersionOf(roleBindings),
    kind: roleBindings.kind,
    metadata,
    roleRef: { apiGroup: roles.group, kind: roles.kind, name: roleName },
    subjects,
  };
}
