import { Backend } from '../../../sandbox/binding/backend.ts';
import { fixtureKinds, fixtureObject } from '../../../sandbox/binding/fixture-kinds.ts';
import { Provider } from '../../../sandbox/binding/provider.ts';
import { put } from '../../../sandbox/binding/resources.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  kubeconfigKey,
  kubeconfigNamespace as namespace,
} from '../../../src/api/binding/names.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import { customResourceDefinitions, secrets } from '../../../src/api/resources.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { listIn, own } from '../../../src/kit/json-value.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import type { NodeStage } from '../node-stage.ts';
import { getIfThere } from './consumer.ts';
import { bindingPlane } from './planes.ts';

const isolation = 'Prefixed';
const { kettles } = fixtureKinds('upgrade.example', isolation);
const crd = kettles.crd.metadata.name;
const clusterNamespace = 'kube-bind-1a2b';
const acme = { namespace, name: 'acme' };
const patience = { timeoutMs: 60_000 };

/** For `binding.bindable` of the chart. */
export const boundKind = crd;

/** An object that drawbridge on a node syncs with its copy at a provider, a plane here. */
export class BoundObject {
  readonly #name: { readonly namespace: string; readonly name: string };
  readonly #copy: { readonly namespace: string; readonly name: string };
  readonly #consumer: Cluster;
  readonly #provider: Provider;
  readonly #backend: Backend;

  private constructor(namespace: string, consumer: Cluster, provider: Provider, backend: Backend) {
    this.#name = { namespace, name: 'evening' };
    this.#copy = { namespace: backend.serviceNamespaceOf(namespace), name: 'evening' };
    this.#consumer = consumer;
    this.#provider = provider;
    this.#backend = backend;
  }

  /** Binds the kind, and creates the object in a namespace of the node. */
  static async open({ node }: NodeStage, inNamespace: string): Promise<BoundObject> {
    const plane = await bindingPlane('provider');
    const provider = await Provider.open(plane);
    await provider.install(kettles.crd);
    const { server } = await plane.proxy(undefined, node.host);
    const place = { clusterNamespace, isolation, informerScope: 'Namespaced' } as const;
    const backend = await Backend.open(provider, { ...place, server, tlsServerName: 'localhost' });
    await backend.export({ name: 'kettles', kinds: [kettles] });
    const consumer = openCluster(await fileCredentials(node.adminKubeconfig), { clock: systemClock });
    const bound = new BoundObject(inNamespace, consumer, provider, backend);
    await bound.#bind();
    await bound.whenReady();
    await whenServed(node, crd);
    await consumer.client.create(kettles.inConsumer, fixtureObject(kettles, bound.#name));
    return bound;
  }

  /** Reasons for which the binding is not Ready, or its kind not served; empty if both are. */
  async faults(): Promise<string[]> {
    const { client } = this.#consumer;
    const [binding, definition] = await Promise.all([
      getIfThere(client, apiServiceBindings, { name: 'kettles' }),
      getIfThere(client, customResourceDefinitions, { name: crd }),
    ]);
    return [...faultsOf('the binding', 'Ready', binding), ...faultsOf('the kind', 'Established', definition)];
  }

  async whenReady(): Promise<void> {
    await until('the binding to be Ready', async () => (await this.faults()).length === 0, patience);
  }

  async heatTo(heat: number): Promise<void> {
    await this.#consumer.client.mergePatch(kettles.inConsumer, this.#name, { spec: { heat } });
  }

  /** Resolves to the uid of the copy, once it has that heat. */
  async copyWith(heat: number): Promise<string> {
    const copy = async (): Promise<string | undefined> => {
      const found = await getIfThere(this.#provider.client, kettles.inProvider, this.#copy);
      return own(found?.spec, 'heat') === heat ? found?.metadata.uid : undefined;
    };
    return until(`a copy with heat ${heat}`, copy, patience);
  }

  /** Writes the status of the copy; resolves once the object has it. */
  async answer(result: string): Promise<void> {
    const status = { status: { result } };
    await this.#provider.client.mergePatch(kettles.inProvider, this.#copy, status, { subresource: 'status' });
    const isBack = async (): Promise<boolean> => {
      const found = await this.#consumer.client.get(kettles.inConsumer, this.#name);
      return own(found.status, 'result') === result;
    };
    await until(`the status ${result}`, isBack, patience);
  }

  /** Unbinds, which deletes the kind with the object and its copy. */
  async close(): Promise<void> {
    const { client } = this.#consumer;
    await client.delete(apiServiceBindingBundles, { name: acme.name });
    const isGone = async (): Promise<boolean> =>
      (await getIfThere(client, customResourceDefinitions, { name: crd })) === undefined;
    await until('the bound kind to be gone', isGone, patience);
    await client.delete(secrets, acme);
    await this.#consumer.close();
    await this.#backend.close();
    await this.#provider.close();
  }

  async #bind(): Promise<void> {
    const { client } = this.#consumer;
    const kubeconfig = Buffer.from(this.#backend.identity.kubeconfig).toString('base64');
    const data = { [kubeconfigKey]: kubeconfig };
    await put(client, secrets, { apiVersion: 'v1', kind: 'Secret', metadata: acme, type: 'Opaque', data });
    await client.create(apiServiceBindingBundles, {
      apiVersion: apiVersionOf(apiServiceBindingBundles),
      kind: apiServiceBindingBundles.kind,
      metadata: { name: acme.name },
      spec: { kubeconfigSecretRef: { ...acme, key: kubeconfigKey } },
    });
  }
}

function faultsOf(what: string, type: string, object: KubeObject | undefined): string[] {
  const condition = listIn(object?.status, 'conditions').find((one) => own(one, 'type') === type);
  return own(condition, 'status') === 'True' ? [] : [`${what}: ${own(condition, 'reason')}`];
}
