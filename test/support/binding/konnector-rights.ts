import type { FixtureKind } from '../../../sandbox/binding/fixture-kinds.ts';
import {
  clusterRole,
  clusterRoleBindings,
  clusterRoles,
  put,
  roleBinding,
  rule,
} from '../../../sandbox/binding/resources.ts';
import { bindGroup } from '../../../src/api/binding/names.ts';
import { roleBindings, roles } from '../../../src/api/resources.ts';
import type { Client } from '../../../src/kube/client.ts';

export const konnectorNamespace = 'kube-bind';

/** Permissions of a konnector in a consumer, whatever is bound. */
const konnectorRules = [
  rule(
    'apiextensions.k8s.io',
    ['customresourcedefinitions'],
    'get',
    'list',
    'watch',
    'create',
    'update',
    'patch',
    'delete',
  ),
  rule(bindGroup, ['apiservicebindings'], 'get', 'list', 'watch', 'create', 'patch', 'delete'),
  rule(bindGroup, ['apiservicebindingbundles'], 'get', 'list', 'watch'),
  rule(bindGroup, ['apiservicebindings/status', 'apiservicebindingbundles/status'], 'get', 'patch', 'update'),
  rule('', ['namespaces'], 'get', 'list', 'watch', 'create'),
  rule('events.k8s.io', ['events'], 'create', 'patch'),
];

/** Permissions in the namespace of the konnector: on the Secrets with kubeconfigs, and on the Lease. */
const ownNamespaceRules = [
  rule('', ['secrets'], 'get', 'list', 'watch', 'create', 'update', 'patch'),
  rule('coordination.k8s.io', ['leases'], 'get', 'list', 'watch', 'create', 'update', 'patch'),
];

const claimVerbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];

export interface KonnectorRights {
  /** The user of the konnector. */
  readonly user: string;
  /** Kinds that may be bound. */
  readonly kinds: readonly FixtureKind[];
  /** Plurals of the core group that may be claimed. */
  readonly claims: readonly string[];
}

/** Grants a konnector its permissions in the consumer, without wildcards. `id` is part of the names of the roles. */
export async function grantKonnectorRights(client: Client, id: string, rights: KonnectorRights): Promise<void> {
  const name = `konnector-${id}`;
  const namespace = konnectorNamespace;
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: rights.user }];
  const bound = rights.kinds.flatMap(({ inConsumer: { group, plural } }) => [
    rule(group, [plural], 'get', 'list', 'watch', 'update', 'patch', 'delete'),
    rule(group, [`${plural}/status`], 'get', 'update', 'patch'),
  ]);
  const claimed = rights.claims.length > 0 ? [rule('', rights.claims, ...claimVerbs)] : [];
  await put(client, clusterRoles, clusterRole(name, [...konnectorRules, ...bound, ...claimed]));
  await put(client, clusterRoleBindings, roleBinding({ name }, { kind: 'ClusterRole', name }, subjects));
  const metadata = { namespace, name };
  await put(client, roles, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata,
    rules: ownNamespaceRules,
  });
  await put(client, roleBindings, roleBinding(metadata, { kind: 'Role', name }, subjects));
}
