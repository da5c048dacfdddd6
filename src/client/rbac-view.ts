import type { KubeObject } from '../api/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../api/resources.ts';
import { listIn, own, strings } from '../kit/json-value.ts';
import type { RbacRule } from '../rbac/rule-cover.ts';
import type { ClusterConnection } from './cluster-connection.ts';

/** The rules of a Role or ClusterRole. */
export const rulesIn = (role: unknown): RbacRule[] =>
  listIn(role, 'rules').map((rule) => ({
    apiGroups: strings(own(rule, 'apiGroups')),
    resources: strings(own(rule, 'resources')),
    resourceNames: strings(own(rule, 'resourceNames')),
    verbs: strings(own(rule, 'verbs')),
  }));

/** The role that a binding names. */
export const roleOf = (binding: KubeObject): { readonly kind: string; readonly name: string } => {
  const role = own(binding, 'roleRef');
  return { kind: String(own(role, 'kind')), name: String(own(role, 'name')) };
};

/** A subject of a binding. The name of a ServiceAccount is `NAMESPACE/NAME`. */
export interface Subject {
  readonly kind: string;
  readonly name: string;
}

/** The subjects of a binding. A user that is a ServiceAccount, by the name with which it authenticates, becomes a ServiceAccount. */
export const subjectsIn = (binding: KubeObject): Subject[] =>
  listIn(binding, 'subjects').map((subject) => {
    const [kind = '', name = '', namespace = ''] = ['kind', 'name', 'namespace'].map((field) =>
      String(own(subject, field) ?? ''),
    );
    const [, account] = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(kind === 'User' ? name : '') ?? [];
    if (account !== undefined) return { kind: 'ServiceAccount', name: account.replace(':', '/') };
    return { kind, name: kind === 'ServiceAccount' ? `${namespace}/${name}` : name };
  });

/** The permissions that one binding gives to one subject. */
export interface BoundPermissions {
  readonly subject: Subject;
  /** Empty if the role does not exist. */
  readonly rules: readonly RbacRule[];
  /** The namespace of a RoleBinding; absent for a ClusterRoleBinding, which applies to all namespaces. */
  readonly namespace?: string;
  /** The name of the binding. */
  readonly binding: string;
  /** The kind and the name of the role to which the binding refers. */
  readonly role: string;
  /** The kind, the namespace, and the name of the binding, for messages. */
  readonly by: string;
}

/**
 * The permissions that each binding of the cluster gives to each of its subjects. Rejects with ApiError if the user may not list all roles
 * and bindings.
 */
export async function permissionsByBinding({ cluster }: ClusterConnection): Promise<BoundPermissions[]> {
  const lists = [clusterRoles, roles, clusterRoleBindings, roleBindings].map((resource) =>
    cluster.client.list(resource),
  );
  const [allClusterRoles, allRoles, allClusterRoleBindings, allRoleBindings] = (await Promise.all(lists)).map(
    ({ items }) => items,
  );
  const rules = new Map<string, RbacRule[]>();
  for (const role of allClusterRoles ?? []) rules.set(`ClusterRole  ${role.metadata.name}`, rulesIn(role));
  for (const role of allRoles ?? []) rules.set(`Role ${role.metadata.namespace} ${role.metadata.name}`, rulesIn(role));
  return [...(allClusterRoleBindings ?? []), ...(allRoleBindings ?? [])].flatMap((binding) => {
    const { kind, name } = roleOf(binding);
    const { namespace } = binding.metadata;
    const found = rules.get(`${kind} ${kind === 'Role' ? namespace : ''} ${name}`) ?? [];
    const by =
      namespace === undefined
        ? `ClusterRoleBinding ${binding.metadata.name}`
        : `RoleBinding ${namespace}/${binding.metadata.name}`;
    return subjectsIn(binding).map((subject) => ({
      subject,
      rules: found,
      binding: binding.metadata.name,
      role: `${kind} ${name}`,
      ...(namespace === undefined ? {} : { namespace }),
      by,
    }));
  });
}
