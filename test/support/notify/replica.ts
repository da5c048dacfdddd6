import type { KubeObject, Resource } from '../../../src/api/object.ts';
import type { LeaderGate } from '../../../src/engine/leader-gate.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { aborted } from '../../../src/kit/promises.ts';
import type { Client } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { InformerStore } from '../../../src/kube/informer-store.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';
import { notifyControllers } from '../../../src/notify/controllers.ts';
import type { Answer, Message, Sink } from '../../../src/notify/sink.ts';
import { openNotifyStores } from '../../../src/notify/stores.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import type { MemoryCluster } from '../binding/memory-cluster.ts';
import type { SimulatedClock } from '../simulated-clock.ts';

export interface ReplicaWorld {
  readonly clock: SimulatedClock;
  readonly api: MemoryCluster;
  readonly random: () => number;
  /** Before and after each effect of a replica. May kill it. */
  step(replica: Replica, what: string): void;
  /** Milliseconds that a call takes. */
  latency(): number;
  sink(sink: Sink, message: Message, signal: AbortSignal): Promise<Answer>;
}

/** A new one each time: it would keep all who wait for it in memory. */
const never = (): Promise<never> => new Promise(() => undefined);

/** Server-side apply of a whole object, with its resourceVersion as a precondition. */
export const applying =
  (api: MemoryCluster) =>
  async (resource: Resource, object: KubeObject): Promise<KubeObject> => {
    const { resourceVersion, ...metadata } = object.metadata;
    const before = api.find(resource, object.metadata);
    if (resourceVersion !== undefined && resourceVersion !== before?.metadata.resourceVersion)
      throw new ApiError(409, 'Conflict', 'the object has been modified');
    api.calls.push({ verb: 'patch', plural: resource.plural, name: metadata.name, body: object });
    return structuredClone(api.put(resource, { ...object, metadata }));
  };

/** One process of the feature: the real controllers, with slow calls. After `kill`, nothing of it has an effect. */
export class Replica {
  readonly startedMs: number;
  endedMs = Number.POSITIVE_INFINITY;
  leads = false;
  readonly #world: ReplicaWorld;
  readonly #stop = new AbortController();
  readonly #handles: StoreHandle<Projected>[] = [];
  #lead: (() => void) | undefined;
  #lose: (() => void) | undefined;
  readonly #ended: Promise<void>;

  constructor(world: ReplicaWorld) {
    this.#world = world;
    const { clock, random } = world;
    this.startedMs = clock.now();
    const stores = openNotifyStores({ watch: (spec) => this.#watch(spec) });
    const client = this.#client();
    const gate = this.#gate();
    const manager = new Manager({ clock, log: noLog, random });
    const send = async (sink: Sink, message: Message, signal: AbortSignal) => {
      await this.#effect('send');
      const answer = await world.sink(sink, message, signal);
      await this.#effect('sent');
      return answer;
    };
    const controllers = notifyControllers({
      ...{ stores, client, send, clock, random },
      namespace: 'drawbridge-system',
      source: 'cluster-1',
      addressOf: (user) => (user.includes('@') ? user : undefined),
      log: noLog,
      metrics: createMetrics(),
    });
    for (const controller of controllers) manager.add(controller, gate);
    this.#ended = manager.run(this.#stop.signal).catch(() => undefined);
    this.#keepAlive();
  }

  get isAlive(): boolean {
    return this.endedMs === Number.POSITIVE_INFINITY;
  }

  get mayLead(): boolean {
    return this.isAlive && this.#lead !== undefined && !this.#stop.signal.aborted;
  }

  lead(): void {
    this.leads = true;
    this.#lead?.();
  }

  /** Another process holds the Lease. */
  lose(): void {
    this.leads = false;
    this.#lose?.();
  }

  kill(): void {
    this.endedMs = this.#world.clock.now();
    this.leads = false;
    this.#stop.abort();
    for (const { release } of this.#handles) release();
  }

  /** Resolves once it has released the Lease. */
  async shutDown(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    if (this.isAlive) this.kill();
  }

  #keepAlive(): void {
    if (!this.isAlive) return;
    for (const { store } of this.#handles) (store as InformerStore<Projected>).alive();
    this.#world.clock.schedule(30_000, () => this.#keepAlive());
  }

  #watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    const handle = this.#world.api.watch(spec);
    this.#handles.push(handle as unknown as StoreHandle<Projected>);
    return handle;
  }

  async #effect(what: string): Promise<void> {
    if (!this.isAlive) return never();
    this.#world.step(this, what);
    await (this.isAlive
      ? new Promise<void>((resolve) => this.#world.clock.schedule(this.#world.latency(), resolve))
      : never());
    if (!this.isAlive) return never();
  }

  #client(): Client {
    const { api } = this.#world;
    const { client } = api;
    const write =
      <Args extends unknown[]>(call: (...args: Args) => Promise<KubeObject>) =>
      async (...args: Args): Promise<KubeObject> => {
        await this.#effect('write');
        if (!this.leads) throw new Error('not leading');
        const written = await call(...args);
        await this.#effect('written');
        return written;
      };
    return {
      ...client,
      get: async (...args) => {
        await this.#effect('get');
        return client.get(...args);
      },
      mergePatch: write(client.mergePatch),
      apply: write(applying(api)),
    };
  }

  #gate(): LeaderGate {
    const replica = this;
    return {
      name: 'drawbridge-notify',
      get leading() {
        return replica.leads;
      },
      async run(work, signal) {
        while (!signal.aborted) {
          await Promise.race([new Promise<void>((resolve) => (replica.#lead = resolve)), aborted(signal)]);
          replica.#lead = undefined;
          if (signal.aborted) return;
          const leading = new AbortController();
          replica.#lose = () => leading.abort();
          signal.addEventListener('abort', () => leading.abort(), { once: true });
          await work(leading.signal);
          replica.leads = false;
        }
      },
    };
  }
}
