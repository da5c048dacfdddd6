import { shoots } from '../../../examples/inventory/components/cluster.ts';
import { virtualNetworks } from '../../../examples/inventory/components/network.ts';
import {
  apiVersionOf,
  type KubeObject,
  keyOf,
  nameOf,
  type ObjectName,
  type Resource,
} from '../../../src/api/object.ts';
import { configMaps } from '../../../src/api/resources.ts';
import { type Cancel, type Clock, formatTime } from '../../../src/kit/clock.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { ApiError, isNotFound } from '../../../src/kube/errors.ts';
import type { Projected } from '../../../src/kube/store.ts';

export interface CloudOptions {
  /** The management cluster, which contains the custom resources. */
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** Duration of each operation. Default 50 ms. */
  readonly delayMs?: number;
  /** An administrator kubeconfig of the managed cluster. */
  readonly kubeconfig: () => Promise<string> | string;
}

const finalizer = 'simulated.example.org/cloud';
export const simulatedAuthority = '-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n';

/** Simulates the operators of the custom resources: those of the networks, and Gardener. It is slow and fails on request. */
export class SimulatedCloud {
  /** Injected faults, by plural resource name. */
  readonly faults = new Map<string, { readonly lasting: boolean; readonly message: string }>();
  /** Number of issued kubeconfigs. */
  kubeconfigs = 0;
  readonly #options: CloudOptions;
  readonly #endings: (() => void)[] = [];
  readonly #pending = new Map<string, Cancel>();

  constructor(options: CloudOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    for (const resource of [virtualNetworks, shoots]) {
      const handle = this.#options.cluster.watch({ resource, project: bare });
      const unsubscribe = handle.store.subscribe(({ type, key }) => {
        if (type !== 'deleted') this.#later(resource, key);
      });
      this.#endings.push(unsubscribe, () => handle.release());
      await handle.store.whenSynced();
    }
  }

  stop(): void {
    for (const end of this.#endings.splice(0)) end();
    for (const cancel of this.#pending.values()) cancel();
    this.#pending.clear();
  }

  /** Client of the management cluster with Gardener's subresource, which a CRD cannot define. */
  get client(): Client {
    const { client } = this.#options.cluster;
    return {
      ...client,
      create: (resource, object, options) =>
        options?.subresource === 'adminkubeconfig'
          ? this.#adminKubeconfig(object)
          : client.create(resource, object, options),
    };
  }

  /** Reconciles all failed objects again. */
  async heal(resource: Resource): Promise<void> {
    this.faults.delete(resource.plural);
    const { items } = await this.#options.cluster.client.list(resource);
    for (const { metadata } of items) this.#later(resource, keyOf(metadata));
  }

  #later(resource: Resource, key: string): void {
    const { clock, delayMs = 50 } = this.#options;
    const id = `${resource.plural} ${key}`;
    if (this.#pending.has(id)) return;
    const work = (): void => {
      this.#pending.delete(id);
      this.#reconcile(resource, nameOf(key)).catch((error: unknown) => {
        // Operators retry after any error.
        if (!isNotFound(error) && this.#endings.length > 0) this.#later(resource, key);
      });
    };
    this.#pending.set(id, clock.schedule(delayMs, work));
  }

  async #reconcile(resource: Resource, name: ObjectName): Promise<void> {
    const { client } = this.#options.cluster;
    const object = await client.get(resource, name);
    if (object.metadata.deletionTimestamp !== undefined) return this.#release(resource, object);
    if (!object.metadata.finalizers?.includes(finalizer)) {
      await client.mergePatch(resource, name, { metadata: { finalizers: [finalizer] } });
      return this.#later(resource, keyOf(name));
    }
    const fault = this.faults.get(resource.plural);
    if (resource === shoots) await this.#shoot(object, fault);
    else await this.#network(object, fault);
  }

  async #release(resource: Resource, object: KubeObject): Promise<void> {
    const { client } = this.#options.cluster;
    const confirmed = object.metadata.annotations?.['confirmation.gardener.cloud/deletion'] === 'true';
    if (resource === shoots && !confirmed) return;
    await client.mergePatch(resource, object.metadata, { metadata: { finalizers: null } });
    if (resource === shoots) await client.delete(configMaps, authorityOf(object));
  }

  async #network({ metadata }: KubeObject, fault: { readonly lasting: boolean; readonly message: string } | undefined) {
    const condition = fault
      ? { status: 'False', severity: fault.lasting ? 'Error' : 'Warning', reason: 'Failed', message: fault.message }
      : { status: 'True', reason: 'Succeeded', message: '' };
    await this.#writeStatus(virtualNetworks, metadata, {
      id: `/subscriptions/simulated/virtualNetworks/${metadata.name}`,
      conditions: [{ type: 'Ready', observedGeneration: metadata.generation, ...condition }],
    });
  }

  async #shoot(shoot: KubeObject, fault: { readonly lasting: boolean; readonly message: string } | undefined) {
    const { metadata } = shoot;
    const seen = own(shoot.status, 'observedGeneration');
    const type = seen === undefined ? 'Create' : 'Reconcile';
    if (!fault && own(own(shoot.status, 'lastOperation'), 'state') !== 'Processing' && seen !== metadata.generation) {
      const lastOperation = { type, state: 'Processing', progress: 42, description: 'machines are being made' };
      await this.#writeStatus(shoots, metadata, { lastOperation });
      return this.#later(shoots, keyOf(metadata));
    }
    if (!fault) await this.#authority(shoot);
    const state = fault ? (fault.lasting ? 'Failed' : 'Error') : 'Succeeded';
    await this.#writeStatus(shoots, metadata, {
      observedGeneration: metadata.generation,
      lastOperation: { type, state, progress: 100, description: fault?.message ?? 'all is there' },
      advertisedAddresses: [{ name: 'external', url: `https://api.${metadata.name}.example.org` }],
    });
  }

  async #authority(shoot: KubeObject): Promise<void> {
    const object = {
      apiVersion: apiVersionOf(configMaps),
      kind: configMaps.kind,
      metadata: authorityOf(shoot),
      data: { 'ca.crt': simulatedAuthority },
    };
    await this.#options.cluster.client.create(configMaps, object).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.code === 409)) throw error;
    });
  }

  async #writeStatus(resource: Resource, name: ObjectName, status: unknown): Promise<void> {
    await this.#options.cluster.client.mergePatch(resource, name, { status }, { subresource: 'status' });
  }

  async #adminKubeconfig(request: KubeObject): Promise<KubeObject> {
    const { cluster, clock, kubeconfig } = this.#options;
    await cluster.client.get(shoots, request.metadata);
    const seconds = Number(own(request.spec, 'expirationSeconds'));
    // Gardener's limit and error.
    if (seconds > 86_400) throw new ApiError(422, 'Invalid', 'spec.expirationSeconds: must not be more than 24h');
    this.kubeconfigs += 1;
    // Each kubeconfig differs, because its certificate does.
    const text = `# ${this.kubeconfigs}\n${await kubeconfig()}`;
    return {
      ...request,
      status: {
        kubeconfig: Buffer.from(text, 'utf8').toString('base64'),
        expirationTimestamp: formatTime(clock.now() + seconds * 1000),
      },
    };
  }
}

const authorityOf = ({ metadata: { namespace = '', name } }: KubeObject) => ({ namespace, name: `${name}.ca-cluster` });

function bare({ metadata }: KubeObject): Projected {
  return { key: keyOf(metadata), uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '' };
}
