import type { PermissionClaim } from '../../src/api/binding/permission-claim.ts';
import { roleBindings, roles } from '../../src/api/resources.ts';
import { until } from '../wait.ts';
import type { BackendOptions } from './backend-options.ts';
import type { FixtureKind } from './fixture-kinds.ts';
import { aggregateLabel, binder, type Provider } from './provider.ts';
import { clusterRole, clusterRoles, put, type Rule, roleBinding, rule } from './resources.ts';

const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

/**
 * Grants a konnector the permissions that kube-bind's backend grants: on exported resources in every namespace of the provider; on
 * claimed resources in every namespace, or, with informer scope Namespaced, in each service namespace. A grant resolves once the API server
 * allows it, so that tests can assert that a konnector makes no denied call.
 */
export class ExportRights {
  readonly #provider: Provider;
  readonly #options: BackendOptions;
  /** Rules on claimed resources, by export. */
  readonly #claims = new Map<string, readonly Rule[]>();
  readonly #namespaces = new Set<string>();

  constructor(provider: Provider, options: BackendOptions) {
    this.#provider = provider;
    this.#options = options;
  }

  async grant(name: string, kinds: readonly FixtureKind[], claims: readonly PermissionClaim[]): Promise<void> {
    const resources = kinds.map(({ inProvider: { group, plural } }) => rule(group, [plural], ...verbs));
    const claimed = claims.map(({ group, resource }) => rule(group, [resource], ...verbs));
    const labels = { [aggregateLabel]: 'true' };
    const { client } = this.#provider;
    await put(client, clusterRoles, clusterRole(this.#roleName('resources', name), resources, labels));
    if (this.#options.informerScope === 'Cluster') {
      await put(client, clusterRoles, clusterRole(this.#roleName('claims', name), claimed, labels));
    } else {
      this.#claims.set(name, claimed);
      for (const namespace of this.#namespaces) await this.#grantInNamespace(namespace, name, claimed);
    }
    await this.#provider.bindExportsTo(this.#options.clusterNamespace);
    await this.#whenAllowed(this.#options.informerScope === 'Cluster' ? [...resources, ...claimed] : resources);
  }

  /** Called when a service namespace was created. */
  async grantIn(namespace: string): Promise<void> {
    this.#namespaces.add(namespace);
    for (const [name, rules] of this.#claims) await this.#grantInNamespace(namespace, name, rules);
  }

  async revoke(name: string): Promise<void> {
    this.#claims.delete(name);
    await this.#provider.remove(clusterRoles, this.#roleName('resources', name), this.#roleName('claims', name));
  }

  async #grantInNamespace(namespace: string, exported: string, rules: readonly Rule[]): Promise<void> {
    const { client } = this.#provider;
    const where = { namespace, name: `kube-binder-claims-${exported}` };
    const subjects = [{ kind: 'ServiceAccount', name: binder, namespace: this.#options.clusterNamespace }];
    await put(client, roles, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: where, rules });
    await put(client, roleBindings, roleBinding(where, { kind: 'Role', name: where.name }, subjects));
    await this.#whenAllowed(rules, namespace);
  }

  /** The controller manager aggregates ClusterRoles, and the API server reads all roles from a cache. */
  async #whenAllowed(rules: readonly Rule[], namespace?: string): Promise<void> {
    const { client } = this.#provider;
    const user = `system:serviceaccount:${this.#options.clusterNamespace}:${binder}`;
    const place = namespace === undefined ? {} : { namespace };
    for (const { apiGroups, resources } of rules) {
      for (const group of apiGroups) {
        for (const resource of resources) {
          const isAllowed = (): Promise<boolean> =>
            client.isAllowed({ user, verb: 'watch', group, resource, ...place });
          await until(`the permission on ${resource} of ${user}`, isAllowed, { timeoutMs: 30_000, everyMs: 10 });
        }
      }
    }
  }

  #roleName(part: 'resources' | 'claims', name: string): string {
    return `kube-binder-${part}-${this.#options.clusterNamespace}-${name}`;
  }
}
