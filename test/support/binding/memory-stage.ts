import { randomUUID } from 'node:crypto';
import {
  apiServiceBindings,
  apiServiceExports,
  boundSchemas,
  clusterBindings,
  syncerFinalizer,
} from '../../../src/api/binding/names.ts';
import type { SecretKeyRef } from '../../../src/api/binding/secret-key-ref.ts';
import { type KubeObject, keyOf, type Resource } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { RunningSyncers } from '../../../src/binding/service-binding/running-syncers.ts';
import type {
  Heartbeat,
  ProviderSession,
  SessionLookup,
  SessionState,
  Sessions,
} from '../../../src/binding/sessions/provider-session.ts';
import { openProviderStores } from '../../../src/binding/stores/provider-stores.ts';
import type { RefusedWatch } from '../../../src/binding/sync-engine/syncer.ts';
import type { Controller } from '../../../src/engine/controller.ts';
import type { RecordedEvent } from '../../../src/kube/event-object.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { depsOf } from './deps.ts';
import { MemoryCluster } from './memory-cluster.ts';
import {
  bindingManifest,
  boundSchemaManifest,
  clusterBindingManifest,
  exportManifest,
  kubeconfigSecretRef,
} from './objects.ts';

/** The bound kind of the manifests. */
export const kettles: Resource = {
  group: 'kitchen.example',
  version: 'v1',
  plural: 'kettles',
  kind: 'Kettle',
  namespaced: true,
};
export const crdName = 'kettles.kitchen.example';
export const exportKey = 'kb-acme/kettles';

/** A session whose state the test sets. */
export class FakeSession implements ProviderSession {
  readonly id: string = randomUUID().slice(0, 8);
  readonly clusterNamespace = 'kb-acme';
  readonly cluster: MemoryCluster;
  readonly stores: ProviderSession['stores'];
  clusterNamespaceUid: string | undefined = 'uid-of-kb-acme';
  state: SessionState = { kind: 'synced' };
  refused: RefusedWatch[] = [];

  constructor(cluster: MemoryCluster) {
    this.cluster = cluster;
    this.stores = openProviderStores(cluster, this.clusterNamespace).stores;
  }

  get client() {
    return this.cluster.client;
  }

  refusedWatches(): readonly RefusedWatch[] {
    return this.refused;
  }
}

export class FakeSessions implements Sessions {
  answer: SessionLookup = { kind: 'pending' };
  beat: Heartbeat | undefined = { ok: true };
  readonly #listeners = new Set<(secret: string) => void>();

  lookup(_ref: SecretKeyRef): SessionLookup {
    return this.answer;
  }

  list(): ProviderSession[] {
    const { answer } = this;
    if (answer.kind === 'session') return [answer.session];
    return answer.kind === 'invalid' && answer.lastGood ? [answer.lastGood] : [];
  }

  secretsOf(): Set<string> {
    return new Set([keyOf(kubeconfigSecretRef)]);
  }

  heartbeat(): Heartbeat | undefined {
    return this.beat;
  }

  subscribe(listener: (secret: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  notify(): void {
    for (const listener of this.#listeners) listener(keyOf(kubeconfigSecretRef));
  }
}

/** A consumer and a provider in memory, and one binding between them. */
export class MemoryStage {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly provider = new MemoryCluster(this.clock);
  readonly sessions = new FakeSessions();
  readonly session = new FakeSession(this.provider);
  readonly syncers = new RunningSyncers();
  readonly events: RecordedEvent[] = [];
  /** The added controllers, without those that were removed. */
  readonly running = new Set<Controller>();
  readonly deps = depsOf(this.consumer, this.clock, {
    events: { record: (event) => void this.events.push(event), close: () => Promise.resolve() },
    runningControllers: {
      add: (controller) => void this.running.add(controller),
      remove: (controller) => Promise.resolve(void this.running.delete(controller)),
    },
  });

  constructor() {
    this.sessions.answer = { kind: 'session', session: this.session };
    this.provider.put(clusterBindings, clusterBindingManifest());
  }

  bind(metadata: object = {}): void {
    const { metadata: own, ...rest } = bindingManifest();
    this.consumer.put(apiServiceBindings, { ...rest, metadata: { ...own, ...metadata } });
  }

  offer(): void {
    this.provider.put(boundSchemas, boundSchemaManifest());
    this.provider.put(apiServiceExports, exportManifest());
  }

  binding(): KubeObject | undefined {
    return this.consumer.find(apiServiceBindings, { name: 'kettles' });
  }

  crd(): KubeObject | undefined {
    return this.consumer.find(customResourceDefinitions, { name: crdName });
  }

  /** Acts as the API server: serves the kind, and keeps its definition until its objects are deleted. */
  establish(uid = 'uid-of-kettles'): void {
    const crd = this.crd() ?? { ...manifestOfCrd, metadata: { name: crdName, ownerReferences: [ownerOf(uid)] } };
    this.consumer.put(customResourceDefinitions, {
      ...crd,
      metadata: { ...crd.metadata, finalizers: ['customresourcecleanup.apiextensions.k8s.io'] },
      status: {
        conditions: ['NamesAccepted', 'Established'].map((type) => ({
          type,
          status: 'True',
          reason: 'Fine',
          message: 'fine',
          lastTransitionTime: '2026-11-21T08:00:00Z',
        })),
        acceptedNames: { plural: 'kettles', kind: 'Kettle' },
        storedVersions: ['v1'],
      },
    });
  }

  /** An object of the consumer that has a copy. */
  object(name = 'blue'): void {
    this.consumer.put(kettles, {
      apiVersion: 'kitchen.example/v1',
      kind: 'Kettle',
      metadata: { namespace: 'team-a', name, finalizers: ['example.com/other', syncerFinalizer] },
    });
  }
}

export const ownerOf = (uid: string) => ({
  apiVersion: 'kube-bind.io/v1alpha2',
  kind: 'APIServiceBinding',
  name: 'kettles',
  uid,
  controller: true,
});

/** The CRD of boundSchemaManifest. */
export const crdSpec = {
  group: 'kitchen.example',
  names: { plural: 'kettles', singular: 'kettle', kind: 'Kettle', listKind: 'KettleList' },
  scope: 'Namespaced',
  conversion: { strategy: 'None' },
  versions: [
    {
      name: 'v1',
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } },
      subresources: { status: {} },
    },
  ],
};

const manifestOfCrd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', spec: crdSpec };

export interface ConditionFields {
  readonly type: string;
  readonly lastTransitionTime: string;
  status: string;
  severity?: string;
  reason?: string;
  message?: string;
}

export function statusOf(object: KubeObject | undefined): { conditions?: ConditionFields[] } {
  return object?.status ?? {};
}

/** The conditions of an object by type, without their times. */
export function conditionsOf(
  object: KubeObject | undefined,
): Record<string, Omit<ConditionFields, 'type' | 'lastTransitionTime'>> {
  const { conditions = [] } = statusOf(object);
  return Object.fromEntries(
    conditions.map(({ type, status, severity, reason, message }) => [
      type,
      { status, ...(severity && { severity }), ...(reason && { reason }), ...(message && { message }) },
    ]),
  );
}
