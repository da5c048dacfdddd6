import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceNamespaces,
  clusterNamespaceAnnotation,
  copyOfAnnotation,
} from '../../../src/api/binding/names.ts';
import { apiVersionOf, type KubeObject, nameOf, type ObjectName, type Resource } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces } from '../../../src/api/resources.ts';
import type { ProviderSession } from '../../../src/binding/sessions/provider-session.ts';
import type { InformerScope, IsolationName } from '../../../src/binding/stores/provider-stores.ts';
import { openSyncer, type SyncerOptions } from '../../../src/binding/sync/open-syncer.ts';
import type { Syncer, SyncMode } from '../../../src/binding/sync-engine/syncer.ts';
import type { RecordedEvent } from '../../../src/kube/event-object.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { depsOf } from './deps.ts';
import { MemoryCluster, type Stored } from './memory-cluster.ts';
import { FakeSession } from './memory-stage.ts';
import { bindingManifest, serviceNamespaceManifest } from './objects.ts';
import { exportOf, schemaOf, versionOf } from './views.ts';

export interface SyncStageOptions {
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly isolation?: IsolationName;
  readonly informerScope?: InformerScope;
}

export const clusterNamespace = 'kb-acme';

/** A consumer and a provider in memory, one bound kind, and a syncer that can be started, killed, and restarted. */
export class SyncStage {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly provider = new MemoryCluster(this.clock);
  readonly kettles: { readonly consumer: Resource; readonly provider: Resource };
  readonly metrics = createMetrics();
  readonly events: RecordedEvent[] = [];
  readonly #options: Required<SyncStageOptions>;
  #process: { readonly stop: AbortController; readonly syncer: Syncer; readonly runs: Promise<unknown> } | undefined;

  constructor(options: SyncStageOptions = {}) {
    this.#options = { scope: 'Namespaced', isolation: 'Prefixed', informerScope: 'Namespaced', ...options };
    const namespaced = this.#options.scope === 'Namespaced';
    const kettles = { group: 'kitchen.example', version: 'v1', plural: 'kettles', kind: 'Kettle', namespaced };
    const providerNamespaced = namespaced || this.#options.isolation === 'Namespaced';
    this.kettles = { consumer: kettles, provider: { ...kettles, namespaced: providerNamespaced } };
    this.establish();
    this.consumer.put(apiServiceBindings, bindingManifest());
  }

  /** The CRD in the consumer as the API server accepts it or, if not `established`, rejects its names and serves nothing. */
  establish(established = true, versions: readonly object[] = [], namesAccepted = established): void {
    const { group, plural, kind, namespaced } = this.kettles.consumer;
    this.consumer.put(customResourceDefinitions, {
      apiVersion: apiVersionOf(customResourceDefinitions),
      kind: customResourceDefinitions.kind,
      metadata: { name: `${plural}.${group}` },
      spec: { group, scope: namespaced ? 'Namespaced' : 'Cluster', names: { plural, kind }, versions },
      status: {
        conditions: Object.entries({ Established: established, NamesAccepted: namesAccepted }).map(
          ([type, isTrue]) => ({ type, status: isTrue ? 'True' : 'False' }),
        ),
      },
    });
  }

  /** Answers an APIServiceNamespace as the backend does. */
  answerNamespace(namespace: string): void {
    const name = { namespace: clusterNamespace, name: namespace };
    const asked = this.provider.find(apiServiceNamespaces, name);
    const status = { namespace: `${clusterNamespace}-${namespace}` };
    this.provider.put(apiServiceNamespaces, { ...(asked ?? serviceNamespaceManifest({ metadata: name })), status });
  }

  addNamespace(name: string): void {
    this.consumer.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }

  /** Starts a new process without state. */
  start(mode: SyncMode = 'sync', options: Partial<SyncerOptions> = {}): Syncer {
    const deps = depsOf(this.consumer, this.clock, {
      events: { record: (event) => void this.events.push(event), close: () => Promise.resolve() },
      metrics: this.metrics,
    });
    const { scope, isolation, informerScope } = this.#options;
    const exported = exportOf({ isolation, informerScope });
    const schema = schemaOf({ scope, informerScope, versions: [versionOf({ schema: {} })] });
    const session = this.session();
    const syncer = openSyncer({ session, exported, schema, mode, random: () => 0.5, ...options }, deps);
    const stop = new AbortController();
    const runs = Promise.all(syncer.controllers.map((controller) => controller.run(stop.signal)));
    this.#process = { stop, syncer, runs };
    return syncer;
  }

  session(): ProviderSession {
    return new FakeSession(this.provider);
  }

  /** Kills the process: it writes nothing and receives no event any more. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (!process) return;
    this.#process = undefined;
    process.stop.abort(new Error('killed'));
    await process.runs;
    process.syncer.close();
    await this.consumer.close();
    await this.provider.close();
  }

  /** Waits long enough for all work in flight to end. */
  async settle(ms = 3_000): Promise<void> {
    await this.clock.advance(ms);
    await this.clock.settle();
  }

  put(key: ObjectName, fields: Partial<KubeObject> = {}): Stored {
    return this.consumer.put(this.kettles.consumer, kettleAt(key, fields));
  }

  object(key: ObjectName): Stored | undefined {
    return this.consumer.find(this.kettles.consumer, key);
  }

  copy(key: ObjectName): Stored | undefined {
    return this.provider.find(this.kettles.provider, key);
  }

  putCopy(key: ObjectName, fields: Partial<KubeObject> = {}): Stored {
    return this.provider.put(this.kettles.provider, kettleAt(key, fields));
  }

  /** Writes as a controller of the provider does. */
  report(key: ObjectName, status: unknown): void {
    const copy = this.copy(key);
    if (copy) this.provider.put(this.kettles.provider, { ...copy, status });
  }

  async remove(key: ObjectName): Promise<void> {
    await this.consumer.client.delete(this.kettles.consumer, key);
  }
}

/** Annotations of drawbridge's copy of the object `consumerKey`. */
export const ownAnnotations = (consumerKey: string, uid: string): Record<string, string> => ({
  ...otherKonnectorAnnotations(nameOf(consumerKey).namespace ?? '', uid),
  [copyOfAnnotation]: `uid-of-kettles/${consumerKey}`,
});

/** Annotations of a copy by another konnector. */
export const otherKonnectorAnnotations = (consumerNamespace: string, uid: string): Record<string, string> => ({
  [clusterNamespaceAnnotation]: clusterNamespace,
  'kube-bind.io/consumer-namespace': consumerNamespace,
  'kube-bind.io/consumer-uid': uid,
});

const kettleAt = (key: ObjectName, { metadata, ...fields }: Partial<KubeObject>): KubeObject => ({
  apiVersion: 'kitchen.example/v1',
  kind: 'Kettle',
  spec: { litres: 2 },
  ...fields,
  metadata: { ...metadata, ...key },
});

/** A stage whose provider answers for namespace team-a. */
export function openStage(options: SyncStageOptions = {}): SyncStage {
  const stage = new SyncStage(options);
  if (options.scope !== 'Cluster') stage.answerNamespace('team-a');
  return stage;
}

export const tea = { namespace: 'team-a', name: 'tea' };
export const teaCopy = { namespace: 'kb-acme-team-a', name: 'tea' };

/** A stage with one object that is in sync. Its calls until then are forgotten. */
export async function stageInSync(options: SyncStageOptions = {}): Promise<SyncStage> {
  const stage = openStage(options);
  stage.start();
  stage.put(tea);
  await stage.settle();
  assert.ok(stage.copy(teaCopy));
  stage.consumer.calls.length = 0;
  stage.provider.calls.length = 0;
  return stage;
}

export const litresOf = (object: KubeObject | undefined): unknown => (object?.spec as { litres?: unknown })?.litres;
