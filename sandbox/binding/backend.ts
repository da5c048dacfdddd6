import {
  apiServiceExports,
  apiServiceNamespaces,
  bindGroup,
  bindVersion,
  boundSchemas,
  ownerLabel,
} from '../../src/api/binding/names.ts';
import type { PermissionClaim } from '../../src/api/binding/permission-claim.ts';
import { sameConditions } from '../../src/api/conditions.ts';
import { apiVersionOf, type KubeObject, type OwnerReference } from '../../src/api/object.ts';
import { namespaces } from '../../src/api/resources.ts';
import { type BindConditionUpdate, conditionTrue, setConditions } from '../../src/binding/conditions.ts';
import type { OpenedStores } from '../../src/binding/stores/open-stores.ts';
import {
  openProviderStores,
  type ProviderStores,
  type ServiceNamespaceView,
} from '../../src/binding/stores/provider-stores.ts';
import { Controller } from '../../src/engine/controller.ts';
import { done, notReady, type Result } from '../../src/engine/result.ts';
import { fromSubscription } from '../../src/engine/sources/from-subscription.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { isAlreadyExists } from '../../src/kube/errors.ts';
import type { StoreEvent } from '../../src/kube/store.ts';
import { noLog } from '../../src/observe/log.ts';
import { until } from '../wait.ts';
import type { BackendOptions } from './backend-options.ts';
import { boundSchemaOf } from './bound-schema.ts';
import { ClusterNamespace } from './cluster-namespace.ts';
import { ExportRights } from './export-rights.ts';
import type { FixtureKind } from './fixture-kinds.ts';
import type { Provider } from './provider.ts';

export interface ExportOptions {
  /** Name of the export, and so of the binding. */
  readonly name: string;
  readonly kinds: readonly FixtureKind[];
  readonly claims?: readonly PermissionClaim[];
  /** Namespaces of the consumer that the provider creates from the beginning. */
  readonly namespaces?: readonly string[];
}

const apiVersion = `${bindGroup}/${bindVersion}`;
const namespaceAnnotation = 'kube-bind.io/api-service-namespace';
const missingSchema: BindConditionUpdate = {
  type: 'ProviderInSync',
  status: 'False',
  severity: 'Error',
  reason: 'BoundSchemaMissing',
  message: 'a BoundSchema is missing',
};

/** kube-bind's backend for one consumer: it creates exports, grants permissions, and answers APIServiceNamespaces. */
export class Backend {
  readonly options: BackendOptions;
  readonly provider: Provider;
  readonly identity: ClusterNamespace;
  readonly #stores: OpenedStores<ProviderStores>;
  readonly #rights: ExportRights;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;

  private constructor(provider: Provider, identity: ClusterNamespace, options: BackendOptions) {
    this.options = options;
    this.provider = provider;
    this.identity = identity;
    this.#stores = openProviderStores(provider.cluster, options.clusterNamespace);
    this.#rights = new ExportRights(provider, options);
    this.#ended = Promise.all(this.#controllers().map((controller) => controller.run(this.#stop.signal)));
  }

  static async open(provider: Provider, options: BackendOptions): Promise<Backend> {
    const identity = await ClusterNamespace.open(provider, options.clusterNamespace, options);
    const backend = new Backend(provider, identity, options);
    await backend.#stores.whenSynced();
    return backend;
  }

  get clusterNamespace(): string {
    return this.options.clusterNamespace;
  }

  /** Answers a request of the consumer: creates BoundSchemas, then the export, then its permissions. */
  async export({ name, kinds, claims = [], namespaces: consumerNamespaces = [] }: ExportOptions): Promise<void> {
    const { client } = this.provider;
    const { isolation, informerScope, clusterNamespace: namespace } = this.options;
    const schemas = kinds.map(({ crd }) => boundSchemaOf(crd, { namespace, isolation, informerScope }));
    for (const schema of schemas) await client.create(boundSchemas, schema);
    const created = await client.create(apiServiceExports, {
      apiVersion,
      kind: apiServiceExports.kind,
      metadata: { namespace, name },
      spec: {
        informerScope,
        isolation,
        resources: kinds.map(({ inProvider: { group, plural, version } }) => ({
          group,
          resource: plural,
          versions: [version],
        })),
        ...(claims.length > 0 && { permissionClaims: claims }),
      },
    });
    const owner = ownerOf(created);
    for (const { metadata } of schemas) {
      const ownerReferences = [{ ...owner, controller: true, blockOwnerDeletion: true }];
      await client.mergePatch(boundSchemas, metadata, { metadata: { ownerReferences } });
    }
    for (const namespaceName of consumerNamespaces) await this.claimNamespace(namespaceName, owner);
    await this.#rights.grant(name, kinds, claims);
  }

  /** Deletes the export and everything that belongs to it. */
  async withdraw(name: string): Promise<void> {
    await this.provider.client.delete(apiServiceExports, { namespace: this.clusterNamespace, name });
    await this.#rights.revoke(name);
  }

  /** Changes the spec of a BoundSchema, as the backend does with schemaUpdatePolicy Always. */
  async changeSchema(kind: FixtureKind, change: (spec: Record<string, unknown>) => unknown): Promise<void> {
    const where = { namespace: this.clusterNamespace, name: kind.crd.metadata.name };
    const { spec } = await this.provider.client.get(boundSchemas, where);
    await this.provider.client.mergePatch(boundSchemas, where, { spec: change(spec as Record<string, unknown>) });
  }

  /** Creates an APIServiceNamespace on behalf of the provider: the consumer should have a Namespace of that name. */
  async claimNamespace(name: string, owner?: OwnerReference): Promise<void> {
    const metadata = {
      namespace: this.clusterNamespace,
      name,
      labels: { [ownerLabel]: 'provider' },
      ...(owner ? { ownerReferences: [owner] } : {}),
    };
    await this.provider.client.create(apiServiceNamespaces, {
      apiVersion,
      kind: apiServiceNamespaces.kind,
      metadata,
      spec: {},
    });
  }

  /** The provider's namespace for a namespace of the consumer. */
  serviceNamespaceOf(consumerNamespace: string): string {
    return this.options.isolation === 'None' ? consumerNamespace : `${this.clusterNamespace}-${consumerNamespace}`;
  }

  /** Resolves once the APIServiceNamespace exists and the backend has answered it. */
  async whenNamespace(consumerNamespace: string): Promise<string> {
    const serviceNamespace = (): string | undefined =>
      this.#stores.stores.serviceNamespaces.get(`${this.clusterNamespace}/${consumerNamespace}`)?.serviceNamespace;
    return until(`the service namespace of ${consumerNamespace}`, serviceNamespace, { timeoutMs: 30_000 });
  }

  /** Live views of the objects that konnector and backend share. */
  get stores(): ProviderStores {
    return this.#stores.stores;
  }

  /** Deletes everything that the backend created in the provider, but not the konnector's copies. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    for (const { name } of this.stores.exports.list()) await this.#rights.revoke(name);
    const service = [...this.stores.serviceNamespaces.list()].flatMap(({ serviceNamespace = [] }) => serviceNamespace);
    this.#stores.release();
    await this.provider.unbindExportsFrom(this.clusterNamespace);
    await this.provider.remove(namespaces, this.clusterNamespace, ...service);
  }

  #controllers(): Controller[] {
    const { exports, schemas, serviceNamespaces } = this.stores;
    const common = { clock: systemClock, log: noLog, workers: 4 };
    return [
      new Controller({
        ...common,
        name: 'service-namespaces',
        sources: [
          fromSubscription('namespaces', serviceNamespaces, ({ key }: StoreEvent<ServiceNamespaceView>) => [key]),
        ],
        reconciler: { reconcile: (key) => this.#reconcileNamespace(key) },
      }),
      new Controller({
        ...common,
        name: 'exports',
        sources: [
          fromSubscription('exports', exports, ({ key }) => [key]),
          fromSubscription('schemas', schemas, () => [...exports.list()].map(({ key }) => key)),
        ],
        reconciler: { reconcile: (key) => this.#reconcileExport(key) },
      }),
    ];
  }

  /** Creates the Namespace of an APIServiceNamespace and writes its status. Deletes the Namespace of a deleted APIServiceNamespace. */
  async #reconcileNamespace(key: string): Promise<Result> {
    const { client } = this.provider;
    const name = key.slice(key.indexOf('/') + 1);
    const view = this.stores.serviceNamespaces.get(key);
    if (!view) {
      // With isolation None, the Namespace has the consumer's name and stays.
      await client.delete(namespaces, { name: `${this.clusterNamespace}-${name}` });
      return done;
    }
    if (view.serviceNamespace !== undefined) return done;
    const namespace = this.serviceNamespaceOf(name);
    const metadata = { name: namespace, annotations: { [namespaceAnnotation]: key } };
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata }).catch(ignoreExisting);
    await this.#rights.grantIn(namespace);
    const where = { namespace: this.clusterNamespace, name };
    await client.mergePatch(apiServiceNamespaces, where, { status: { namespace } }, { subresource: 'status' });
    return done;
  }

  /** Writes the condition ProviderInSync of an export and grants its permissions. */
  async #reconcileExport(key: string): Promise<Result> {
    const found = this.stores.exports.get(key);
    if (!found) return done;
    await this.provider.bindExportsTo(this.clusterNamespace);
    const missing = found.resources.filter(
      ({ group, resource }) => !this.stores.schemas.get(`${found.namespace}/${resource}.${group}`),
    );
    const condition = missing.length === 0 ? conditionTrue('ProviderInSync') : missingSchema;
    const conditions = setConditions(found.conditions, [condition], Date.now());
    if (sameConditions(found.conditions, conditions)) return done;
    const patch = { metadata: { resourceVersion: found.resourceVersion }, status: { conditions } };
    const where = { namespace: found.namespace, name: found.name };
    await this.provider.client.mergePatch(apiServiceExports, where, patch, { subresource: 'status' });
    return notReady();
  }
}

function ownerOf(object: KubeObject): OwnerReference {
  const { name, uid = '' } = object.metadata;
  return { apiVersion: apiVersionOf(apiServiceExports), kind: object.kind, name, uid };
}

function ignoreExisting(error: unknown): void {
  if (!isAlreadyExists(error)) throw error;
}
