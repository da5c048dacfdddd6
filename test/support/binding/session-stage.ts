import {
  apiServiceBindings,
  clusterBindings,
  kubeconfigKey,
  providerKubeconfigLabel,
} from '../../../src/api/binding/names.ts';
import { secrets } from '../../../src/api/resources.ts';
import { readKubeconfig } from '../../../src/binding/sessions/kubeconfig.ts';
import type { SessionLookup } from '../../../src/binding/sessions/provider-session.ts';
import { SecretWatches } from '../../../src/binding/sessions/secret-watches.ts';
import { SessionPool } from '../../../src/binding/sessions/session-pool.ts';
import { SessionReconciler } from '../../../src/binding/sessions/session-reconciler.ts';
import { SessionRegistry } from '../../../src/binding/sessions/session-registry.ts';
import { openConsumerStores } from '../../../src/binding/stores/consumer-stores.ts';
import { Controller } from '../../../src/engine/controller.ts';
import type { Result } from '../../../src/engine/result.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';
import { noLog } from '../../../src/observe/log.ts';
import { settleIo } from '../io.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { MemoryCluster } from './memory-cluster.ts';
import { bindingManifest, clusterBindingManifest } from './objects.ts';
import { unlisted } from './stores.ts';

export const secretKey = 'kube-bind/kubeconfig-acme';

interface Kubeconfig {
  readonly server?: string;
  readonly token?: string;
  readonly namespace?: string;
}

export const acme = 'https://acme.example:6443';

export function kubeconfigText({ server = acme, token = 'first', namespace = 'kb-acme' }: Kubeconfig = {}): string {
  return JSON.stringify({
    'current-context': 'default',
    clusters: [{ name: 'default', cluster: { server } }],
    users: [{ name: 'default', user: { token } }],
    contexts: [
      { name: 'default', context: { cluster: 'default', user: 'default', ...(namespace ? { namespace } : {}) } },
    ],
  });
}

/** The cluster of a kubeconfig. */
export class Provider {
  readonly cluster: MemoryCluster;
  uid: string;
  readonly revoked = new Set<string>();
  down = false;
  readonly #unsynced: (() => void)[] = [];

  constructor(clock: SimulatedClock, uid: string) {
    this.cluster = new MemoryCluster(clock);
    this.uid = uid;
    this.cluster.put(clusterBindings, clusterBindingManifest());
  }

  check(token: string): void {
    if (this.down) throw new TransportError('connect ECONNREFUSED', undefined, true);
    if (this.revoked.has(token)) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  }

  /** A watch that waits for an unreachable server lists once the server is back. */
  unsynced<T extends Projected>(spec: StoreSpec<T>, clock: SimulatedClock): StoreHandle<T> {
    const handle = unlisted(spec, clock);
    this.#unsynced.push(() => {
      const list = handle.store.beginList();
      list.add(this.cluster.list(spec.resource));
      list.commit();
    });
    return handle;
  }

  recover(): void {
    this.down = false;
    for (const sync of this.#unsynced.splice(0)) sync();
  }
}

export interface Connection {
  readonly server: string;
  readonly token: string;
  closed: boolean;
}

/** The session reconciler over clusters in memory, which the test advances. */
export class SessionStage {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly stores = openConsumerStores(this.consumer).stores;
  readonly registry = new SessionRegistry();
  /** Keys that were enqueued. */
  readonly enqueued: string[] = [];
  readonly watches = new SecretWatches(this.consumer, (secret) => {
    this.enqueued.push(secret);
    this.registry.notifySecret(secret);
  });
  readonly providers = new Map([[acme, new Provider(this.clock, 'uid-of-kb-acme')]]);
  readonly connections: Connection[] = [];
  /** Running controllers, by name. */
  readonly running = new Map<Controller, string>();
  readonly pool = new SessionPool({
    connect: (credentials) => this.connect(credentials),
    writeClient: (client) => client,
    controllers: (session) => [this.#controller(session.id)],
    runningControllers: {
      add: (controller) => void this.running.set(controller, controller.name),
      remove: (controller) => Promise.resolve(void this.running.delete(controller)),
    },
    clock: this.clock,
    log: noLog,
    random: () => 0.5,
    onChange: (session) => this.registry.notifyChanged(session),
  });
  readonly reconciler = new SessionReconciler({
    client: this.consumer.client,
    stores: this.stores,
    watches: this.watches,
    pool: this.pool,
    registry: this.registry,
    clock: this.clock,
  });
  readonly changed: string[] = [];

  constructor() {
    this.registry.subscribe((secret) => this.changed.push(secret));
  }

  get acme(): Provider {
    return this.provider(acme);
  }

  provider(server: string): Provider {
    const provider = this.providers.get(server) ?? new Provider(this.clock, `uid-at-${server}`);
    this.providers.set(server, provider);
    return provider;
  }

  get open(): string[] {
    return this.connections.filter(({ closed }) => !closed).map(({ token }) => token);
  }

  bind(name = 'kettles', { secret = secretKey, key = kubeconfigKey } = {}): void {
    const [namespace, secretName] = secret.split('/');
    const spec = { kubeconfigSecretRef: { namespace, name: secretName, key } };
    this.consumer.put(apiServiceBindings, bindingManifest({ metadata: { name }, spec }));
  }

  unbind(name = 'kettles'): void {
    this.consumer.drop(apiServiceBindings, { name });
  }

  secret(
    text: string | undefined,
    { secret = secretKey, key = kubeconfigKey, labelled = false, annotations = {} } = {},
  ) {
    const [namespace = '', name = ''] = secret.split('/');
    return this.consumer.put(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name, labels: labelled ? { [providerKubeconfigLabel]: 'true' } : {}, annotations },
      data: text === undefined ? {} : { [key]: Buffer.from(text).toString('base64') },
    });
  }

  dropSecret(secret = secretKey): void {
    const [namespace = '', name = ''] = secret.split('/');
    this.consumer.drop(secrets, { namespace, name });
  }

  async reconcile(secret = secretKey, signal = new AbortController().signal): Promise<Result> {
    const result = await this.reconciler.reconcile(secret, signal);
    await settleIo(3);
    return result;
  }

  /** Lets time pass, and what is due then. */
  async settle(ms = 0): Promise<void> {
    await settleIo();
    await this.clock.advance(ms);
    await settleIo();
  }

  lookup(secret = secretKey, key = kubeconfigKey): SessionLookup {
    const [namespace = '', name = ''] = secret.split('/');
    return this.registry.lookup({ namespace, name, key });
  }

  connect(credentials: Credentials): Cluster {
    const provider = this.provider(credentials.server);
    const connection = { server: credentials.server, token: '', closed: false };
    this.connections.push(connection);
    void credentials.connectionAuth().then(({ headers }) => {
      connection.token = String(headers['authorization'] ?? '').replace('Bearer ', '');
    });
    const check = (): void => {
      if (connection.closed) throw new TransportError('the connection is closed', undefined, true);
      provider.check(connection.token);
    };
    return {
      client: checked(provider.cluster.client, check),
      watch: (spec) => {
        const handle = provider.down ? provider.unsynced(spec, this.clock) : provider.cluster.watch(spec);
        // A watch in memory receives no bytes.
        Object.defineProperty(handle.store, 'ageMs', {
          get: () => (provider.down || !handle.store.synced ? Number.POSITIVE_INFINITY : 0),
        });
        return handle;
      },
      identity: async () => {
        check();
        return Promise.resolve(provider.uid);
      },
      close: () => {
        connection.closed = true;
        return Promise.resolve();
      },
    };
  }

  #controller(id: string): Controller {
    const reconciler = { reconcile: () => Promise.reject(new Error('never runs')) };
    return new Controller({ name: `loop/${id}`, sources: [], reconciler, clock: this.clock, log: noLog });
  }
}

/** Loads the module in advance, because that takes half a second of real time. */
export const loadYamlOnce = (): Promise<unknown> => readKubeconfig(kubeconfigText(), 'test');

function checked(client: Client, check: () => void): Client {
  const first =
    <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      check();
      return call(...args);
    };
  return {
    ...client,
    get: first(client.get),
    list: first(client.list),
    create: first(client.create),
    mergePatch: first(client.mergePatch),
    delete: first(client.delete),
  };
}
