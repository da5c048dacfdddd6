import type { KubeObject } from '../api/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../api/resources.ts';
import { listIn, own, strings } from '../kit/json-value.ts';
import type { RbacRule } from '../rbac/rule-cover.ts';
import type { ClusterConnection } from './cluster-connection.ts';

export const rulesIn = (role: unknown): RbacRule[] =>
  listIn(role, 'rules').map((rule) => ({
    apiGroups: strings(own(rule, 'apiGroups')),
    resources: strings(own(rule, 'resources')),
    resourceNames: strings(own(rule, 'resourceNames')),
    verbs: strings(own(rule, 'verbs')),
  }));

export const roleOf = (binding: KubeObject): { readonly kind: string; readonly name: string } => {
  const role = own(binding, 'roleRef');
  return { kind: String(own(role, 'kind')), name: String(own(role, 'name')) };
};

/** The name of a ServiceAccount is `NAMESPACE/NAME`. */
export interface Subject {
  readonly kind: string;
  readonly name: string;
}

/** A user by the name of a ServiceAccount becomes one. */
export const subjectsIn = (binding: KubeObject): Subject[] =>
  listIn(binding, 'subjects').map((subject) => {
    const [kind = '', name = '', namespace = ''] = ['kind', 'name', 'namespace'].map((field) =>
      String(own(subject, field) ?? ''),
    );
    const [, account] = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(kind === 'User' ? name : '') ?? [];
    if (account !== undefined) return { kind: 'ServiceAccount', name: account.replace(':', '/') };
    return { kind, name: kind === 'ServiceAccount' ? `${namespace}/${name}` : name };
  });

/** What one binding gives to one subject. */
export interface BoundPermissions {
  readonly subject: Subject;
  /** Empty if the role does not exist. */
  readonly rules: readonly RbacRule[];
  /** Absent for a ClusterRoleBinding, which applies to all namespaces. */
  readonly namespace?: string;
  readonly binding: string;
  /** Kind and name. */
  readonly role: string;
  /** Kind, namespace, and name of the binding, for messages. */
  readonly by: string;
}

/** Of the whole cluster. Rejects with ApiError if the user may not list roles and bindings. */
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

const readings = new WeakMap<ClusterConnection, Promise<BoundPermissions[]>>();
/** Read once for all checks of a connection. */
export function cachedPermissions(connection: ClusterConnection): Promise<BoundPermissions[]> {
  const reading = readings.get(connection) ?? permissionsByBinding(connection);
  readings.set(connection, reading);
  return reading;
}
