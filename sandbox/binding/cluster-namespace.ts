import { stringify } from 'yaml';
import {
  bindGroup,
  bindVersion,
  clusterBindingName,
  clusterBindings,
  kubeconfigKey,
} from '../../src/api/binding/names.ts';
import { namespaces, roleBindings, secrets, serviceAccounts } from '../../src/api/resources.ts';
import { own } from '../../src/kit/json-value.ts';
import { until } from '../wait.ts';
import type { BackendOptions } from './backend-options.ts';
import { binder, type Provider } from './provider.ts';
import { put, roleBinding } from './resources.ts';

/** Name of the provider's Secret with the kubeconfig for konnectors. */
export const kubeconfigSecret = 'kubeconfig';

/** Of the provider, for the konnector. */
type Address = Required<Pick<BackendOptions, 'server'>> & Pick<BackendOptions, 'tlsServerName'>;

/** The objects that the backend creates for a new consumer: its namespace with a ServiceAccount, permissions, credentials, and the ClusterBinding. */
export class ClusterNamespace {
  readonly provider: Provider;
  readonly name: string;
  readonly #address: Address;
  #tokenSecret: string = binder;
  #kubeconfig = '';

  private constructor(provider: Provider, name: string, address: Address) {
    this.provider = provider;
    this.name = name;
    this.#address = address;
  }

  static async open(provider: Provider, name: string, options: Partial<Address> = {}) {
    const opened = new ClusterNamespace(provider, name, { server: provider.plane.server, ...options });
    await opened.#create();
    return opened;
  }

  /** The text of the kubeconfig that the provider issues, with the token of the ServiceAccount. */
  get kubeconfig(): string {
    return this.#kubeconfig;
  }

  /** Name of the Secret that holds the token. */
  get tokenSecret(): string {
    return this.#tokenSecret;
  }

  /** Creates another token; the old one stays valid until `revoke`. Resolves to the name of the Secret that holds the old one. */
  async rotate(): Promise<string> {
    const old = this.#tokenSecret;
    await this.#useToken(`${binder}-${Date.now().toString(36)}`);
    return old;
  }

  /** Revokes the token. The API server may accept it for another ten seconds. */
  async revoke(tokenSecret: string): Promise<void> {
    await this.provider.client.delete(secrets, { namespace: this.name, name: tokenSecret });
  }

  /** Replaces the kubeconfig for konnectors with a text. */
  async publish(kubeconfig: string): Promise<void> {
    await put(this.provider.client, secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: this.name, name: kubeconfigSecret },
      type: 'Opaque',
      data: { [kubeconfigKey]: Buffer.from(kubeconfig).toString('base64') },
    });
  }

  /** The same credentials with another URL of the API server. */
  kubeconfigVia(server: string): string {
    return this.#kubeconfig.replace(`server: ${this.#address.server}`, `server: ${server}`);
  }

  async #create(): Promise<void> {
    const { client } = this.provider;
    const namespace = this.name;
    await put(client, namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, annotations: identity(namespace) },
    });
    await put(client, serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: binder },
    });
    const subjects = [{ kind: 'ServiceAccount', name: binder, namespace }];
    const role = { kind: 'ClusterRole', name: binder } as const;
    await put(client, roleBindings, roleBinding({ namespace, name: binder }, role, subjects));
    await this.#useToken(binder);
    await put(client, clusterBindings, {
      apiVersion: `${bindGroup}/${bindVersion}`,
      kind: clusterBindings.kind,
      metadata: { namespace, name: clusterBindingName, annotations: identity(namespace) },
      spec: {
        kubeconfigSecretRef: { name: kubeconfigSecret, key: kubeconfigKey },
        providerPrettyName: 'Acme Kitchens',
      },
    });
  }

  async #useToken(tokenSecret: string): Promise<void> {
    const { client, plane } = this.provider;
    const namespace = this.name;
    await put(client, secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name: tokenSecret, annotations: { 'kubernetes.io/service-account.name': binder } },
      type: 'kubernetes.io/service-account-token',
    });
    const issuedToken = async (): Promise<string | false> => {
      const token = own((await client.get(secrets, { namespace, name: tokenSecret }))['data'], 'token');
      return typeof token === 'string' && Buffer.from(token, 'base64').toString();
    };
    const token = await until(`the token of ${namespace}`, issuedToken, { timeoutMs: 30_000 });
    this.#tokenSecret = tokenSecret;
    this.#kubeconfig = stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'default',
          cluster: {
            server: this.#address.server,
            'tls-server-name': this.#address.tlsServerName,
            'certificate-authority-data': Buffer.from(plane.authority.certificate).toString('base64'),
          },
        },
      ],
      users: [{ name: 'default', user: { token } }],
      contexts: [{ name: 'default', context: { cluster: 'default', user: 'default', namespace } }],
      'current-context': 'default',
    });
    await this.publish(this.#kubeconfig);
  }
}

const identity = (name: string): Record<string, string> => ({
  'backend.kube-bind.io/identity': name,
  'backend.kube-bind.io/author': 'test',
});
