import { providerKinds } from '../../src/api/binding/kinds.ts';
import { bindGroup } from '../../src/api/binding/names.ts';
import type { KubeObject, Resource } from '../../src/api/object.ts';
import { customResourceDefinitions } from '../../src/api/resources.ts';
import { customResourceDefinition } from '../../src/api/schema/crd.ts';
import { systemClock } from '../../src/kit/clock.ts';
import type { Client } from '../../src/kube/client.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { fileCredentials } from '../../src/kube/kubeconfig.ts';
import { openCluster } from '../../src/kube/open-cluster.ts';
import type { Plane } from '../plane.ts';
import { whenServed } from '../served.ts';
import { clusterRole, clusterRoleBindings, clusterRoles, put, roleBinding, rule } from './resources.ts';

/** Permissions of a konnector in its cluster namespace: exactly those that kube-bind's backend grants. */
const binderRules = [
  rule(bindGroup, ['apiserviceexportrequests'], 'create', 'delete', 'patch', 'update', 'get', 'list', 'watch'),
  rule('', ['namespaces'], 'get'),
  rule('', ['secrets'], 'get', 'list', 'watch'),
  rule(bindGroup, ['clusterbindings'], 'get', 'list', 'watch'),
  rule(bindGroup, ['clusterbindings/status'], 'get', 'patch', 'update'),
  rule(bindGroup, ['apiserviceexports'], 'get', 'list', 'watch'),
  rule(bindGroup, ['apiserviceexports/status'], 'get', 'patch', 'update'),
  rule(bindGroup, ['apiservicenamespaces'], 'create', 'delete', 'patch', 'update', 'get', 'list', 'watch'),
  rule(bindGroup, ['boundschemas'], 'get', 'list', 'watch'),
  rule(bindGroup, ['boundschemas/status'], 'get', 'list', 'patch', 'update'),
];

export const binder = 'kube-binder';
const exportsRole = 'kube-binder-exports';
export const aggregateLabel = 'rbac.kube-bind.io/aggregate-to-parent';

/** A plane that acts as the provider: the CRDs of kube-bind, the roles that its backend creates, and a client of the backend. */
export class Provider {
  readonly plane: Plane;
  readonly cluster: Cluster;
  readonly client: Client;
  /**
   * Which consumers hold the permissions on exported resources. `last`, as in kube-bind: only the consumer whose export the backend
   * reconciled last. `all`: every consumer. Default `all`.
   */
  rights: 'last' | 'all' = 'all';
  readonly #subjects = new Map<string, object>();

  private constructor(plane: Plane, cluster: Cluster) {
    this.plane = plane;
    this.cluster = cluster;
    this.client = cluster.client;
  }

  static async open(plane: Plane): Promise<Provider> {
    const kubeconfig = await plane.kubeconfigFor('backend', ['system:masters']);
    const cluster = openCluster(await fileCredentials(kubeconfig), { clock: systemClock });
    const provider = new Provider(plane, cluster);
    await provider.install(...providerKinds.map((kind) => customResourceDefinition(kind)));
    await put(provider.client, clusterRoles, clusterRole(binder, binderRules));
    const { rules: _, ...filledByAggregation } = clusterRole(exportsRole, []);
    await put(provider.client, clusterRoles, {
      ...filledByAggregation,
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregateLabel]: 'true' } }] },
    });
    return provider;
  }

  /** Applies CRDs and waits until they are served. */
  async install(...crds: readonly KubeObject[]): Promise<void> {
    await Promise.all(crds.map((crd) => put(this.client, customResourceDefinitions, crd)));
    await Promise.all(crds.map((crd) => whenServed(this.plane, crd.metadata.name)));
  }

  /** Reconciles an export as the backend does: grants its permissions to that consumer's ServiceAccount. */
  async bindExportsTo(clusterNamespace: string): Promise<void> {
    const subject = { kind: 'ServiceAccount', name: binder, namespace: clusterNamespace };
    if (this.rights === 'last') this.#subjects.clear();
    this.#subjects.set(clusterNamespace, subject);
    await this.#bindExports();
  }

  async unbindExportsFrom(clusterNamespace: string): Promise<void> {
    if (this.#subjects.delete(clusterNamespace)) await this.#bindExports();
  }

  async remove(resource: Resource, ...names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.client.delete(resource, { name })));
  }

  async close(): Promise<void> {
    await this.cluster.close();
  }

  async #bindExports(): Promise<void> {
    const role = { kind: 'ClusterRole', name: exportsRole } as const;
    await put(this.client, clusterRoleBindings, roleBinding({ name: exportsRole }, role, [...this.#subjects.values()]));
  }
}
