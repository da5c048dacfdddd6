import { referenceComponents } from '../../../examples/inventory/components/reference-components.ts';
import type { Component, EntryAccessor } from '../../../examples/inventory/components/sdk/contract.ts';
import type { Credentials } from '../../../examples/inventory/components/sdk/kubernetes.ts';
import { Run } from '../../../examples/inventory/components/sdk/run.ts';
import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { clusterInventories, kubeconfigKey, kubeconfigSecretName } from '../../../src/api/inventory/names.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import { secrets } from '../../../src/api/resources.ts';
import { formatMicroTime, formatTime } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { MemoryCluster } from '../binding/memory-cluster.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { SimulatedCloud } from './cloud.ts';
import { simulatedKubeconfig } from './kubeconfigs.ts';

const at = { namespace: 'fleet', name: 'rt-1' };
export const entryUid = '11111111-2222-3333-4444-555555555555';

/** Reference components with an in-memory management cluster, an in-memory managed cluster, and a simulated cloud. */
export class ComponentStage {
  readonly clock = new SimulatedClock();
  readonly management = new MemoryCluster(this.clock);
  readonly managed = new MemoryCluster(this.clock);
  readonly cloud = new SimulatedCloud({
    cluster: this.management,
    clock: this.clock,
    delayMs: 1_000,
    kubeconfig: () => simulatedKubeconfig('cloud'),
  });
  /** Server URLs of the kubeconfigs that the components used. */
  readonly opened: string[] = [];
  /** Whether the managed cluster never answers lists. */
  silent = false;
  /** The managed cluster rejects tokens with this prefix. */
  denied = '';
  readonly #components: ReadonlyMap<string, Component>;
  #seq = 0;
  #tokens = 0;

  constructor() {
    const connect = (credentials: Credentials): Client => {
      this.opened.push(credentials.server);
      return this.#managedClient(this.managed.client, credentials);
    };
    this.#components = referenceComponents({ management: this.cloud.client, connect, clock: this.clock });
    this.managed.withoutStatus.add('serviceaccounts');
  }

  async start(spec: Readonly<Record<string, unknown>>): Promise<void> {
    await this.cloud.start();
    this.management.put(clusterInventories, {
      apiVersion: apiVersionOf(clusterInventories),
      kind: clusterInventories.kind,
      metadata: { ...at, uid: entryUid },
      spec,
    });
    this.secret(kubeconfigSecretName(entryUid), undefined);
  }

  /** Creates a Secret in the namespace of the entry. */
  secret(name: string, kubeconfig: string | undefined): void {
    const data = kubeconfig === undefined ? {} : { [kubeconfigKey]: Buffer.from(kubeconfig).toString('base64') };
    const metadata = { namespace: at.namespace, name };
    this.management.put(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  }

  get entry(): KubeObject {
    return this.management.find(clusterInventories, at) as KubeObject;
  }

  get outputs(): Readonly<Record<string, unknown>> {
    return ((this.entry.status ?? {}) as { outputs?: Record<string, unknown> }).outputs ?? {};
  }

  async annotate(annotations: Readonly<Record<string, string>>): Promise<void> {
    await this.management.client.mergePatch(clusterInventories, at, { metadata: { annotations } });
  }

  /** Runs the component once and applies its outputs like the server. */
  async run(component: string, operation: Operation = 'reconcile'): Promise<Outcome> {
    const found = this.#components.get(component);
    if (!found) throw new Error(`there is no component ${component}`);
    const run = new Run(found, this.#request(component, operation), this.#transports(), this.clock);
    void run.execute();
    const answer = await run.answer;
    if (answer.kind !== 'outcome') throw new Error('the component did not answer with its outcome');
    const { outcome } = answer;
    if ('outputs' in outcome && outcome.outputs) await this.#patch({ outputs: outcome.outputs });
    const owner = component === 'byoc' ? 'kubeconfig' : component;
    if (outcome.outcome === 'Deleted') await this.#patch({ outputs: { [owner]: null } });
    return outcome;
  }

  /** Runs the component repeatedly, with time for the cloud in between, until it is Done. */
  async finish(component: string): Promise<Outcome> {
    for (let round = 0; round < 20; round++) {
      const outcome = await this.run(component);
      if (outcome.outcome === 'Done') return outcome;
      if (outcome.outcome !== 'Progressing') throw new Error(`${component}: ${JSON.stringify(outcome)}`);
      await this.clock.advance(1_000);
    }
    throw new Error(`${component} never finished`);
  }

  async #patch(status: unknown): Promise<KubeObject> {
    return this.management.client.mergePatch(clusterInventories, at, { status }, { subresource: 'status' });
  }

  #transports() {
    const { client } = this.management;
    const kubeconfig = { namespace: at.namespace, name: kubeconfigSecretName(entryUid) };
    const entry: EntryAccessor = {
      get: () => client.get(clusterInventories, at),
      patch: (patch) => client.mergePatch(clusterInventories, at, patch, { subresource: 'status' }),
      kubeconfig: () => client.get(secrets, kubeconfig),
      writeKubeconfig: (text) =>
        client.mergePatch(secrets, kubeconfig, { data: { [kubeconfigKey]: Buffer.from(text).toString('base64') } }),
      secret: (name) => client.get(secrets, { namespace: at.namespace, name }),
    };
    return { openEntry: () => entry, report: () => Promise.reject(new Error('unexpected report')) };
  }

  /** Adds ServiceAccount tokens, which the in-memory cluster does not support. */
  #managedClient(client: Client, credentials: Credentials): Client {
    return {
      ...client,
      get: async (resource, name, options) => {
        if (this.denied !== '' && credentials.token()?.startsWith(this.denied)) {
          throw new ApiError(401, 'Unauthorized', 'unknown token');
        }
        return client.get(resource, name, options);
      },
      list: (resource, options) => (this.silent ? silence(options?.signal) : client.list(resource, options)),
      createToken: (account, { expirationSeconds }) => {
        this.#tokens += 1;
        const expiresAt = formatTime(this.clock.now() + expirationSeconds * 1000);
        return Promise.resolve({ token: `token-${this.#tokens}-of-${account.name}`, expiresAt });
      },
    };
  }

  #request(component: string, operation: Operation): ReconcileRequest {
    this.#seq += 1;
    const id = `${entryUid}.${component}.${this.#seq}`;
    return {
      protocol: 'v1',
      run: { id, seq: this.#seq, attempt: 0, deadline: formatMicroTime(this.clock.now() + 5_000), reasons: [] },
      operation,
      component,
      entry: { url: 'https://api.example.org/entry', id: entryUid, resourceVersion: '1' },
      auth: { token: 'a.b.c', expires: '2026-11-21T09:30:00Z' },
      callback: `https://callback.example.org/v1/runs/${id}`,
    };
  }
}

const silence = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
