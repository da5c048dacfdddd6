import { execAccessRequests } from '../../src/api/access/exec-access.ts';
import type { Grant } from '../../src/api/access/grant.ts';
import { childNameOf, revokeFinalizer } from '../../src/api/access/names.ts';
import type { ExtensionStatus } from '../../src/api/access/status.ts';
import type { KubeObject, Resource } from '../../src/api/object.ts';
import { LiveGrants, openGrantStores } from '../../src/gateway/live-grants.ts';
import { formatTime } from '../../src/kit/clock.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { InformerStore } from '../../src/kube/informer-store.ts';
import { silentLog } from '../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../src/kube/store.ts';
import type { SimulatedClock } from './simulated-clock.ts';

const namespace = 'payments';
const owner = { namespace, name: 'debug', uid: 'r-12345678' };

/** One request with a grant, as the watches of the gateway report it. The test makes every change. */
export class GatewayCluster {
  readonly clock: SimulatedClock;
  readonly grants: LiveGrants;
  /** Namespace and name of the grant. */
  readonly grant = { namespace, name: childNameOf(owner) };
  readonly #stores = new Map<Resource, InformerStore<Projected>>();
  #version = 1;
  #request: KubeObject | undefined;

  constructor(clock: SimulatedClock) {
    this.clock = clock;
    const watch = <T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> => {
      const store = new InformerStore(spec, clock, silentLog);
      this.#stores.set(spec.resource, store as unknown as InformerStore<Projected>);
      return { store, release: () => {} };
    };
    const cluster = { watch } as Cluster;
    this.grants = new LiveGrants(openGrantStores(cluster), clock);
    for (const store of this.#stores.values()) store.beginList().commit();
    this.alive();
  }

  /** All watches have heard from the API server. */
  alive(): void {
    for (const store of this.#stores.values()) store.alive();
  }

  /** Stores the request with its grant, which ends at `endMs`. */
  open(endMs: number, over: Partial<Grant> = {}): Grant {
    const grant: Grant = {
      template: { kind: 'ExecAccessTemplate', name: 'payments-exec', uid: 't-1', generation: 1 },
      subjects: [{ kind: 'User', name: 'alice' }],
      pod: { name: 'web-0' },
      rules: [],
      session: { via: 'Gateway' },
      planHash: 'c0ffee',
      expiresAt: formatTime(endMs),
      ...over,
    };
    this.change({ spec: { templateName: 'payments-exec' }, status: { grant } });
    return grant;
  }

  /** Appends a decided extension. */
  extend(index: number, endMs: number): void {
    const decision = { by: '1h', state: 'Granted', expiresAt: formatTime(endMs) } as ExtensionStatus;
    const status = (this.#request?.status ?? {}) as { extensions?: ExtensionStatus[] };
    const extensions = [...(status.extensions ?? []).slice(0, index), decision];
    this.change({ status: { ...status, extensions } });
  }

  /** Changes fields of the stored request. */
  change({ metadata, ...fields }: { metadata?: object; spec?: object; status?: object }): void {
    const before = this.#request ?? {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      metadata: {
        namespace,
        name: owner.name,
        uid: owner.uid,
        creationTimestamp: formatTime(this.clock.now()),
        finalizers: [revokeFinalizer],
      },
    };
    this.#request = { ...before, ...fields, metadata: { ...before.metadata, ...metadata } };
    this.#apply(execAccessRequests, this.#request);
  }

  remove(): void {
    if (!this.#request) return;
    const { metadata } = this.#request;
    const resourceVersion = String(++this.#version);
    this.#stores
      .get(execAccessRequests)
      ?.apply('DELETED', { ...this.#request, metadata: { ...metadata, resourceVersion } }, resourceVersion);
    this.#request = undefined;
  }

  #apply(resource: Resource, object: KubeObject): void {
    const resourceVersion = String(++this.#version);
    this.#stores
      .get(resource)
      ?.apply('MODIFIED', { ...object, metadata: { ...object.metadata, resourceVersion } }, resourceVersion);
  }
}
