import type { GrantSubject } from '../api/access/grant.ts';
import type { Requester } from '../api/access/request-spec.ts';
import type { AccessConfig } from '../api/access/template-spec.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta } from '../api/object.ts';
import { roleBindings, roles } from '../api/resources.ts';

/** rbac/v1, for resources. An empty `resourceNames` would mean every name: the type forbids it. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly [string, ...string[]];
}

export function roleOf(metadata: ObjectMeta, rules: readonly PolicyRule[]): KubeObject {
  return { apiVersion: apiVersionOf(roles), kind: roles.kind, metadata, rules };
}

/** rbac/v1 Subject as the API stores it. */
export type RbacSubject =
  | { readonly kind: 'User' | 'Group'; readonly name: string; readonly apiGroup: 'rbac.authorization.k8s.io' }
  | { readonly kind: 'ServiceAccount'; readonly name: string; readonly namespace: string };

/** To the Role `roleName` of the same namespace. */
export function roleBindingOf(metadata: ObjectMeta, roleName: string, subjects: readonly RbacSubject[]): KubeObject {
  return {
    apiVersion: apiVersionOf(roleBindings),
    kind: roleBindings.kind,
    metadata,
    roleRef: { apiGroup: roles.group, kind: roles.kind, name: roleName },
    subjects,
  };
}

/** The requester, or with `grantTo: AllowedGroups` every allowed group. Never empty. */
export function subjectsOf(
  config: Pick<AccessConfig, 'allowedGroups' | 'grantTo'>,
  requester: Pick<Requester, 'username'>,
): GrantSubject[] {
  if (config.grantTo === 'AllowedGroups' && config.allowedGroups.length > 0) {
    return config.allowedGroups.map((name) => ({ kind: 'Group', name }));
  }
  return [{ kind: 'User', name: requester.username }];
}

export const toRbacSubject = ({ kind, name }: GrantSubject): RbacSubject => ({
  kind,
  name,
  apiGroup: 'rbac.authorization.k8s.io',
});
