import { type KubeObject, keyOf } from '../../../src/api/object.ts';
import type { Client } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { TransportError } from '../../../src/kube/errors.ts';
import { InformerStore } from '../../../src/kube/informer-store.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';
import type { SimulatedClock } from '../simulated-clock.ts';
import type { Call, MemoryCluster } from './memory-cluster.ts';

interface Whole extends Projected {
  readonly object: KubeObject;
}

/** Maximum delay until a watch reopens after its server is back: the longest backoff of the reflector. */
const relistMs = 5_000;
/** How often an idle watch receives data. */
const aliveMs = 20_000;

const project = (object: KubeObject): Whole => ({
  key: keyOf(object.metadata),
  uid: object.metadata.uid ?? '',
  resourceVersion: object.metadata.resourceVersion ?? '',
  object,
});

/** The connection to a cluster in memory. While it is cut, calls are refused and watches deliver no events. */
export class ProviderLink implements Cluster {
  readonly client: Client;
  readonly #cluster: MemoryCluster;
  readonly #clock: SimulatedClock;
  readonly #stores = new Map<InformerStore<Projected>, () => void>();
  #isCut = false;

  constructor(cluster: MemoryCluster, clock: SimulatedClock) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.client = cluster.client;
    const { fault } = cluster;
    cluster.fault = (call) => {
      if (this.#isCut) throw refused(call);
      return fault(call);
    };
    this.#stayAlive();
  }

  cut(): void {
    this.#isCut = true;
  }

  /** Restores the connection. Calls pass at once; watches relist after the maximum delay. */
  mend(): void {
    this.#isCut = false;
    this.#clock.schedule(relistMs, () => {
      for (const list of this.#stores.values()) list();
    });
  }

  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    const { project: _, indexes: __, ...rest } = spec;
    const source = this.#cluster.watch({ ...rest, project });
    const store = new InformerStore(spec, this.#clock, silentLog);
    const list = (): void => {
      if (this.#isCut) return;
      const fresh = store.beginList();
      fresh.add([...source.store.list()].map(({ object }) => structuredClone(object)));
      fresh.commit();
      store.alive();
    };
    list();
    source.store.subscribe((event) => {
      if (this.#isCut || !store.synced) return;
      const { object, resourceVersion } = event.type === 'deleted' ? event.before : event.now;
      const type = ({ added: 'ADDED', updated: 'MODIFIED', deleted: 'DELETED' } as const)[event.type];
      store.apply(type, structuredClone(object), resourceVersion);
    });
    const entry = store as unknown as InformerStore<Projected>;
    this.#stores.set(entry, list);
    const release = (): void => {
      this.#stores.delete(entry);
      source.release();
      store.close();
    };
    return { store, release };
  }

  identity(): Promise<string> {
    if (this.#isCut) return Promise.reject(new TransportError('connect ECONNREFUSED', undefined, true));
    return Promise.resolve('uid-of-kb-acme');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #stayAlive(): void {
    this.#clock.schedule(aliveMs, () => {
      if (!this.#isCut) for (const store of this.#stores.keys()) store.alive();
      this.#stayAlive();
    });
  }
}

/** An error like the real transport's, whose message includes the call. */
function refused({ verb, plural, subresource, name }: Call): TransportError {
  const path = `/${plural}/${name}${subresource ? `/${subresource}` : ''}`;
  const message = 'connect ECONNREFUSED 10.0.0.1:6443';
  return new TransportError(`${verb.toUpperCase()} ${path}: ${message}`, new Error(message), true, message);
}
