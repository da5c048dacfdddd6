import { referenceComponents } from '../../../examples/inventory/components/reference-components.ts';
import type { Component, EntryAccessor } from '../../../examples/inventory/components/sdk/contract.ts';
import { Run } from '../../../examples/inventory/components/sdk/run.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { clusterInventories, kubeconfigKey, kubeconfigSecretName } from '../../../src/api/inventory/names.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import { secrets } from '../../../src/api/resources.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import type { Reply } from '../../../src/inventory/ports.ts';
import { outcomeReply } from '../../../src/inventory/reply.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { MemoryCluster } from '../binding/memory-cluster.ts';
import { seededRandom } from '../random.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { SimulatedCloud } from './cloud.ts';
import { registrationsAt } from './examples.ts';
import { InMemoryManager } from './in-memory-manager.ts';
import { simulatedKubeconfig } from './kubeconfigs.ts';
import { MemoryRegistrations } from './memory-registrations.ts';
import { type EntrySeed, MemoryInventory } from './memory-stores.ts';

/** The manager and the reference components, registered as in the examples, with in-memory clusters and a simulated clock. */
export class Fleet {
  readonly clock = new SimulatedClock();
  readonly inventory = new MemoryInventory();
  readonly management = new MemoryCluster(this.clock);
  readonly managed = new MemoryCluster(this.clock);
  readonly cloud = new SimulatedCloud({
    cluster: this.management,
    clock: this.clock,
    delayMs: 20_000,
    kubeconfig: () => simulatedKubeconfig('cloud'),
  });
  readonly manager: InMemoryManager;
  /** Called components and their outcomes, in order. */
  readonly runs: string[] = [];
  #tokens = 0;

  constructor(seed: number) {
    const registered = registrationsAt(() => 'http://127.0.0.1:1');
    const components = referenceComponents({
      management: this.cloud.client,
      connect: () => this.#managedClient(),
      clock: this.clock,
    });
    const random = seededRandom(seed);
    this.manager = new InMemoryManager({
      clock: this.clock,
      inventory: this.inventory,
      registrations: new MemoryRegistrations(
        this.clock,
        shuffled(registered, random).map(({ metadata, spec }) => ({ name: metadata.name, ...(spec as object) })),
      ),
      random,
      components: Object.fromEntries(
        [...components].map(([name, component]) => [
          name,
          async (request) => {
            const reply = await this.#call(component, request);
            this.runs.push(`${name} ${reply.kind === 'outcome' ? reply.outcome.outcome : reply.kind}`);
            return reply;
          },
        ]),
      ),
    });
  }

  async start(): Promise<void> {
    await this.cloud.start();
    this.manager.start();
    await this.clock.settle();
  }

  create(seed: EntrySeed): Entry {
    const entry = this.inventory.create(seed);
    const metadata = { namespace: entry.ref.namespace, name: kubeconfigSecretName(entry.ref.uid) };
    this.management.put(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: {} });
    return entry;
  }

  /** Creates the Secret of a supplied kubeconfig. */
  secret(name: string, text: string): void {
    const data = { [kubeconfigKey]: Buffer.from(text).toString('base64') };
    this.management.put(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'inv', name }, data });
  }

  /** Advances the clock until `check` returns a value, at most by `limitMs`. Returns the value and the elapsed milliseconds. */
  async until<T>(what: string, limitMs: number, check: () => T | undefined | false): Promise<T> {
    for (let passed = 0; passed <= limitMs; passed += 1_000) {
      const found = check();
      if (found) return found;
      await this.clock.advance(1_000);
    }
    throw new Error(`${what}: not within ${limitMs} ms; runs: ${this.runs.join(', ')}`);
  }

  states(entry: Entry): Record<string, string> {
    const now = this.inventory.entry(entry.ref);
    return Object.fromEntries((now?.components ?? []).map(({ name, state }) => [name, state]));
  }

  isReady(entry: Entry): boolean {
    const ready = this.inventory.entry(entry.ref)?.conditions.find(({ type }) => type === 'Ready');
    return ready?.status === 'True';
  }

  outputs(entry: Entry): Readonly<Record<string, unknown>> {
    return this.inventory.entry(entry.ref)?.content.status.outputs ?? {};
  }

  async #call(component: Component, request: ReconcileRequest): Promise<Reply> {
    const openEntry = () => this.#accessor(request.entry.id);
    const report = () => Promise.reject(new Error('unexpected report'));
    const run = new Run(component, request, { openEntry, report }, this.clock);
    void run.execute();
    const first = await run.answer;
    if (first.kind === 'accepted') throw new Error('unexpected heartbeat');
    return outcomeReply(JSON.parse(JSON.stringify(first.outcome)), request);
  }

  #managedClient() {
    return {
      ...this.managed.client,
      createToken: (
        account: { readonly name: string },
        { expirationSeconds }: { readonly expirationSeconds: number },
      ) => {
        this.#tokens += 1;
        const expiresAt = formatTime(this.clock.now() + expirationSeconds * 1000);
        return Promise.resolve({ token: `token-${this.#tokens}-of-${account.name}`, expiresAt });
      },
    };
  }

  #accessor(uid: string): EntryAccessor {
    const { client } = this.management;
    const find = (): Entry => {
      const entry = [...this.manager.stores.entries.list()].find(({ ref }) => ref.uid === uid);
      if (!entry) throw new Error('the entry is gone');
      return entry;
    };
    const kubeconfig = { namespace: 'inv', name: kubeconfigSecretName(uid) };
    return {
      get: () => Promise.resolve(objectOf(find())),
      patch: () => Promise.reject(new Error('the reference components publish through their outcome')),
      kubeconfig: () => client.get(secrets, kubeconfig),
      writeKubeconfig: (text) =>
        client.mergePatch(secrets, kubeconfig, { data: { [kubeconfigKey]: Buffer.from(text).toString('base64') } }),
      secret: (name) => client.get(secrets, { namespace: 'inv', name }),
    };
  }
}

function objectOf({ ref: { namespace, name, uid }, annotations, content }: Entry): KubeObject {
  return structuredClone({
    apiVersion: apiVersionOf(clusterInventories),
    kind: clusterInventories.kind,
    metadata: { namespace, name, uid, annotations: { ...annotations } },
    spec: content.spec,
    status: { outputs: content.status.outputs },
  });
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
