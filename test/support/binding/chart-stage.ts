import { Backend } from '../../../sandbox/binding/backend.ts';
import { type FixtureKinds, fixtureKinds } from '../../../sandbox/binding/fixture-kinds.ts';
import { Provider } from '../../../sandbox/binding/provider.ts';
import { put } from '../../../sandbox/binding/resources.ts';
import { chart, Helm } from '../../../sandbox/chart/helm.ts';
import { HostKubelet, hostAnnotation } from '../../../sandbox/chart/host-kubelet.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  kubeconfigKey,
  kubeconfigNamespace,
  providerKubeconfigLabel,
} from '../../../src/api/binding/names.ts';
import { apiVersionOf, type KubeObject, type ObjectName, type Resource } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../src/api/resources.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { rolledOut } from '../chart-stage.ts';
import { getIfThere } from './consumer.ts';
import { bindingPlane } from './planes.ts';

const patience = { timeoutMs: 60_000 };
const isolation = 'Prefixed';

/** A consumer whose konnector is installed with the chart by Helm, and a provider. The konnector has only the permissions that the chart grants. */
export class BindingChartStage {
  readonly plane: Plane;
  readonly helm: Helm;
  readonly kubelet: HostKubelet;
  readonly provider: Provider;
  readonly backend: Backend;
  readonly kinds: FixtureKinds;
  /** Namespace of the release. */
  readonly namespace: string;
  /** Namespace of the consumer's objects. */
  readonly kitchen = 'kitchen';
  readonly serverUser: string;
  /** A client as the administrator of the consumer. */
  readonly client: Client;
  readonly #cluster: Cluster;

  private constructor(
    parts: Pick<BindingChartStage, 'namespace' | 'plane' | 'kubelet' | 'provider' | 'backend' | 'kinds'>,
    cluster: Cluster,
  ) {
    this.namespace = parts.namespace;
    this.serverUser = `system:serviceaccount:${parts.namespace}:drawbridge-binding`;
    this.plane = parts.plane;
    this.kubelet = parts.kubelet;
    this.provider = parts.provider;
    this.backend = parts.backend;
    this.kinds = parts.kinds;
    this.client = cluster.client;
    this.#cluster = cluster;
    const { binaries, directory, adminKubeconfig } = this.plane;
    this.helm = new Helm({ program: binaries.helm, home: directory, kubeconfig: adminKubeconfig });
  }

  static async open(namespace = 'drawbridge-system'): Promise<BindingChartStage> {
    const [plane, provider] = await Promise.all([
      startPlane(),
      bindingPlane('provider').then((its) => Provider.open(its)),
    ]);
    const kinds = fixtureKinds('chart.kitchen.example', isolation);
    await provider.install(kinds.kettles.crd, kinds.ovens.crd);
    const place = { clusterNamespace: 'kube-bind-1a2b', isolation, informerScope: 'Namespaced' } as const;
    const backend = await Backend.open(provider, place);
    const cluster = openCluster(await fileCredentials(plane.adminKubeconfig), { clock: systemClock });
    const kubelet = await HostKubelet.start(plane, namespace);
    const stage = new BindingChartStage({ namespace, plane, kubelet, provider, backend, kinds }, cluster);
    for (const name of [stage.namespace, stage.kitchen]) {
      await put(stage.client, namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    return stage;
  }

  async close(): Promise<void> {
    await this.kubelet.stop();
    await this.#cluster.close();
    await this.provider.remove(
      customResourceDefinitions,
      this.kinds.kettles.crd.metadata.name,
      this.kinds.ovens.crd.metadata.name,
    );
    await this.backend.close();
    // The next file on the plane of the provider creates it again.
    await this.whenGone(namespaces, { name: this.backend.clusterNamespace }, this.provider.client);
    await this.provider.close();
    await this.plane.stop();
  }

  /** Runs `helm install` or `helm upgrade`; resolves when every replica is ready. */
  async helmWithValues(command: 'install' | 'upgrade', values: object): Promise<void> {
    const given = {
      binding: {
        bindable: [this.kinds.kettles, this.kinds.ovens].map(({ crd }) => crd.metadata.name),
        bindableNamespaces: ['from-acme'],
        claimable: ['secrets'],
      },
      service: { port: this.kubelet.port },
      podAnnotations: { [hostAnnotation]: 'true' },
      uninstall: { timeout: '40s' },
      ...values,
    };
    const args = [command, 'drawbridge', chart, '--namespace', this.namespace, '--values', '-'];
    await this.helm.run(args, { input: JSON.stringify(given) });
    await rolledOut(this.plane, this.kubelet, this.namespace);
  }

  /** Resolves with the output of helm once the replicas have ended. */
  async uninstall(): Promise<string> {
    const args = ['uninstall', 'drawbridge', '--namespace', this.namespace, '--timeout', '60s'];
    const { stdout, stderr } = await this.helm.run(args, { reject: false });
    await until('the replicas to end', () => this.kubelet.pods.length === 0, patience);
    return `${stdout}${stderr}`;
  }

  /** Binds as kubectl bind does. */
  async connect(name: string): Promise<void> {
    await put(this.client, secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: kubeconfigNamespace, name, labels: { [providerKubeconfigLabel]: 'true' } },
      type: 'Opaque',
      data: { [kubeconfigKey]: Buffer.from(this.backend.identity.kubeconfig).toString('base64') },
    });
  }

  bind(name: string, secret: string): Promise<KubeObject> {
    return this.#reference(apiServiceBindings, name, secret);
  }

  bundle(name: string, secret: string): Promise<KubeObject> {
    return this.#reference(apiServiceBindingBundles, name, secret);
  }

  /** Resolves once the binding, which is named like its kind, is Ready and the API server serves the kind. */
  async whenReady(binding: keyof FixtureKinds): Promise<void> {
    const isReady = (object: KubeObject): boolean => conditionsOf(object).includes('Ready True');
    await this.when(apiServiceBindings, { name: binding }, isReady);
    await whenServed(this.plane, this.kinds[binding].crd.metadata.name);
  }

  /** Resolves to an object of the consumer, or of the cluster of `client`, once `matches` returns true. */
  async when(
    resource: Resource,
    name: ObjectName,
    matches: (object: KubeObject) => boolean = () => true,
    client: Client = this.client,
  ): Promise<KubeObject> {
    let found: KubeObject | undefined;
    const check = async (): Promise<KubeObject | undefined> => {
      found = await getIfThere(client, resource, name);
      return found && matches(found) ? found : undefined;
    };
    try {
      return await until(`${resource.kind} ${name.name}`, check, patience);
    } catch (error) {
      throw new Error(`${(error as Error).message}; found ${JSON.stringify(found)}\n${await this.kubelet.logs()}`);
    }
  }

  async whenGone(resource: Resource, name: ObjectName, client: Client = this.client): Promise<void> {
    const gone = async (): Promise<boolean> => (await getIfThere(client, resource, name)) === undefined;
    await until(`${resource.kind} ${name.name} to be gone`, gone, patience);
  }

  /** The holder of a Lease of the consumer. */
  async holder(namespace: string, name: string): Promise<string> {
    const { body } = await this.plane.probe(`/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`);
    const holder = own(own(body, 'spec'), 'holderIdentity');
    return typeof holder === 'string' ? holder : '';
  }

  #reference(resource: Resource, name: string, secret: string): Promise<KubeObject> {
    const kubeconfigSecretRef = { namespace: kubeconfigNamespace, name: secret, key: kubeconfigKey };
    return this.client.create(resource, {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { name },
      spec: { kubeconfigSecretRef },
    });
  }
}

/** `type status`, for each condition. */
export function conditionsOf({ status }: KubeObject): string[] {
  const conditions = own(status, 'conditions');
  return (Array.isArray(conditions) ? conditions : []).map((one) => `${own(one, 'type')} ${own(one, 'status')}`);
}
