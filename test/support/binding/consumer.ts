import { KonnectorProcess } from '../../../sandbox/binding/konnector-process.ts';
import { put } from '../../../sandbox/binding/resources.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import type { BindCondition } from '../../../src/api/binding/condition.ts';
import { consumerKinds } from '../../../src/api/binding/kinds.ts';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  bindGroup,
  bindVersion,
  kubeconfigKey,
  providerKubeconfigLabel,
} from '../../../src/api/binding/names.ts';
import type { KubeObject, ObjectName, Resource } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../src/api/resources.ts';
import { consumerCrd } from '../../../src/binding/consumer-crds.ts';
import { type ConsumerStores, openConsumerStores } from '../../../src/binding/stores/consumer-stores.ts';
import type { OpenedStores } from '../../../src/binding/stores/open-stores.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { grantKonnectorRights, type KonnectorRights, konnectorNamespace } from './konnector-rights.ts';

const apiVersion = `${bindGroup}/${bindVersion}`;

const konnectorGroups = [
  'system:serviceaccounts',
  `system:serviceaccounts:${konnectorNamespace}`,
  'system:authenticated',
];

/** How long a test waits, on a busy machine, for an effect that should take milliseconds. */
const patienceMs = 30_000;

/** A plane that acts as the consumer, its administrator, and the konnector that runs there with least privilege. */
export class Consumer {
  readonly plane: Plane;
  readonly cluster: Cluster;
  /** A client as the administrator. */
  readonly client: Client;
  /** The user of the konnector, as in the audit log. */
  readonly konnectorUser: string;
  readonly #id: string;
  readonly #konnectorKubeconfig: string;
  #stores: OpenedStores<ConsumerStores> | undefined;
  readonly #konnectors: KonnectorProcess[] = [];

  private constructor(plane: Plane, cluster: Cluster, id: string, user: string, kubeconfig: string) {
    this.plane = plane;
    this.cluster = cluster;
    this.client = cluster.client;
    this.#id = id;
    this.konnectorUser = user;
    this.#konnectorKubeconfig = kubeconfig;
  }

  static async open(plane: Plane, id: string, rights: Omit<KonnectorRights, 'user'>): Promise<Consumer> {
    const admin = await plane.kubeconfigFor('consumer-admin', ['system:masters']);
    const cluster = openCluster(await fileCredentials(admin), { clock: systemClock });
    const user = `system:serviceaccount:${konnectorNamespace}:konnector-${id}`;
    const consumer = new Consumer(plane, cluster, id, user, await plane.kubeconfigFor(user, konnectorGroups));
    const metadata = { name: konnectorNamespace };
    await put(consumer.client, namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
    await grantKonnectorRights(consumer.client, id, { ...rights, user });
    return consumer;
  }

  /** The last started konnector. */
  get konnector(): KonnectorProcess {
    const last = this.#konnectors.at(-1);
    if (!last) throw new Error('no konnector has been started in this consumer');
    return last;
  }

  /** Starts a konnector and waits until it is ready. */
  async start(...flags: readonly string[]): Promise<KonnectorProcess> {
    const konnector = await this.spawn(...flags);
    await konnector.whenReady();
    return konnector;
  }

  /** Starts a konnector that must wait for the Lease of another one. */
  spawn(...flags: readonly string[]): Promise<KonnectorProcess> {
    return this.#spawn(this.#konnectorKubeconfig, flags);
  }

  /** Starts a konnector with another URL of this plane's API server, without waiting for it. */
  async spawnVia(server: string): Promise<KonnectorProcess> {
    return this.#spawn(await this.plane.kubeconfigFor(this.konnectorUser, konnectorGroups, { server }), []);
  }

  /** Stores of bindings, bundles, namespaces, and CRDs, as the administrator; available once the konnector has installed its CRDs. */
  async stores(): Promise<ConsumerStores> {
    this.#stores ??= openConsumerStores(this.cluster);
    await this.#stores.whenSynced();
    return this.#stores.stores;
  }

  /** Writes the kubeconfig of a provider into a Secret of the konnector's namespace. */
  async connect(
    kubeconfig: string,
    options: {
      readonly name?: string;
      readonly labelled?: boolean;
      readonly annotations?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<string> {
    const { name = `kubeconfig-${this.#id}`, labelled = true, annotations = {} } = options;
    await put(this.client, secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        namespace: konnectorNamespace,
        name,
        labels: labelled ? { [providerKubeconfigLabel]: 'true' } : {},
        annotations: { ...annotations },
      },
      type: 'Opaque',
      data: { [kubeconfigKey]: Buffer.from(kubeconfig).toString('base64') },
    });
    return name;
  }

  /** Binds the export of the same name. */
  bind(name: string, secret: string, options: BindingOptions = {}): Promise<KubeObject> {
    return this.client.create(apiServiceBindings, bindingManifest('APIServiceBinding', name, secret, options));
  }

  async bundle(name: string, secret: string): Promise<void> {
    await this.client.create(apiServiceBindingBundles, bindingManifest('APIServiceBindingBundle', name, secret));
  }

  /** Resolves once the condition of the binding has the status. */
  async whenCondition(
    binding: string,
    type: string,
    status: BindCondition['status'] = 'True',
    options: { readonly reason?: string; readonly message?: RegExp; readonly timeoutMs?: number } = {},
  ): Promise<BindCondition> {
    const { bindings } = await this.stores();
    const { reason, message, timeoutMs = patienceMs } = options;
    const check = (): BindCondition | undefined => {
      const found = bindings.get(binding)?.conditions.find((one) => one.type === type && one.status === status);
      const isWanted =
        (reason === undefined || found?.reason === reason) && (message?.test(found?.message ?? '') ?? true);
      return isWanted ? found : undefined;
    };
    try {
      return await until(`${type} of binding ${binding} to be ${status} ${reason ?? ''} ${message ?? ''}`, check, {
        timeoutMs,
      });
    } catch (error) {
      const found = JSON.stringify(bindings.get(binding)?.conditions ?? 'no such binding');
      throw new Error(`${(error as Error).message}; found ${found}\n${await this.konnector.log()}`);
    }
  }

  get(resource: Resource, name: ObjectName): Promise<KubeObject | undefined> {
    return getIfThere(this.client, resource, name);
  }

  /** Calls of the konnector that the API server of this plane denied for lack of permissions, as `verb resource namespace/name`. */
  refusals(since = 0): string[] {
    return refusals(this.plane, this.konnectorUser, since);
  }

  /** Creates a Namespace for one test, and returns its name. */
  async namespace(name: string): Promise<string> {
    await this.client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    return name;
  }

  /** Ends the konnectors and deletes their objects, including those with finalizers. */
  async close(resources: readonly Resource[], testNamespaces: readonly string[]): Promise<void> {
    for (const konnector of this.#konnectors) if (konnector.running) await konnector.kill();
    this.#stores?.release();
    const installed = consumerKinds.map((kind) => consumerCrd(kind).metadata.name);
    for (const resource of [apiServiceBindingBundles, apiServiceBindings, ...resources]) {
      await this.#forceAway(resource);
    }
    const bound = resources.map(({ plural, group }) => `${plural}.${group}`);
    for (const name of [...bound, ...installed]) await this.client.delete(customResourceDefinitions, { name });
    const own = { namespace: konnectorNamespace };
    const { items } = await this.client.list(secrets, own);
    for (const { metadata } of items) await this.client.delete(secrets, { ...own, name: metadata.name });
    for (const name of testNamespaces) await this.client.delete(namespaces, { name });
    // The konnector of the next test would otherwise find a kind that is still being deleted, without permissions on it.
    const gone = async (): Promise<boolean> => {
      for (const resource of resources) await this.#forceAway(resource);
      const left = await Promise.all(
        [...bound, ...installed].map((name) => this.get(customResourceDefinitions, { name })),
      );
      return left.every((crd) => crd === undefined);
    };
    await until('the CRDs of the konnector, and those it made, to be gone', gone, { timeoutMs: patienceMs });
    await this.cluster.close();
  }

  async #spawn(kubeconfig: string, flags: readonly string[]): Promise<KonnectorProcess> {
    const konnector = await KonnectorProcess.spawn(this.plane, { kubeconfig, flags });
    this.#konnectors.push(konnector);
    return konnector;
  }

  async #forceAway(resource: Resource): Promise<void> {
    const { items } = await this.client.list(resource).catch(() => ({ items: [] }));
    for (const { metadata } of items) {
      await this.client.delete(resource, metadata);
      await this.client.mergePatch(resource, metadata, { metadata: { finalizers: null } }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }
}

interface BindingOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  /** The key in the Secret. */
  readonly key?: string;
}

function bindingManifest(kind: string, name: string, secret: string, options: BindingOptions = {}): KubeObject {
  const { annotations = {}, key = kubeconfigKey } = options;
  return {
    apiVersion,
    kind,
    metadata: { name, annotations: { ...annotations } },
    spec: { kubeconfigSecretRef: { namespace: konnectorNamespace, name: secret, key } },
  };
}

export async function getIfThere(
  client: Client,
  resource: Resource,
  name: ObjectName,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(resource, name);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The calls of a user that the API server of a plane denied. */
export function refusals({ auditLog }: Plane, user: string, since = 0): string[] {
  return auditLog
    .calls({ user, since })
    .filter(({ code }) => code === 403)
    .map(({ verb, resource, namespace, name }) => `${verb} ${resource} ${namespace}/${name}`);
}
