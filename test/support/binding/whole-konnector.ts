import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceExports,
  apiServiceNamespaces,
  boundSchemas,
  clusterBindings,
} from '../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../src/api/resources.ts';
import { bindingControllers } from '../../../src/binding/controllers.ts';
import { commonView } from '../../../src/binding/stores/common-view.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { RecordedEvent } from '../../../src/kube/event-object.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { settleIo } from '../io.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { depsOf } from './deps.ts';
import { MemoryCluster } from './memory-cluster.ts';
import { crdName, kettles } from './memory-stage.ts';
import { bindingManifest, boundSchemaManifest, clusterBindingManifest, exportManifest } from './objects.ts';
import { ProviderLink } from './provider-link.ts';
import { kubeconfigText } from './session-stage.ts';

/** The object of most tests, and its copy. */
export const blue = { namespace: 'team-a', name: 'blue' };
export const copyOfBlue = { namespace: 'kb-acme-team-a', name: 'blue' };

/** All controllers of the konnector together, between two clusters in memory. */
export class WholeKonnector {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly provider = new MemoryCluster(this.clock);
  /** The connection between the konnector and the provider. */
  readonly link = new ProviderLink(this.provider, this.clock);
  /** Recorded Events. */
  readonly events: RecordedEvent[] = [];
  /** The text of `/metrics`. */
  readonly metrics = createMetrics();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor() {
    this.#serveCrds();
    this.#mapNamespaces();
    this.consumer.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } });
    this.consumer.put(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'kube-bind', name: 'kubeconfig-acme' },
      data: { kubeconfig: Buffer.from(kubeconfigText()).toString('base64') },
    });
    this.provider.put(clusterBindings, clusterBindingManifest());
    this.provider.put(boundSchemas, boundSchemaManifest());
    this.provider.put(apiServiceExports, exportManifest());
  }

  start(): void {
    const { clock, consumer } = this;
    const manager = new Manager({ clock, log: noLog });
    const loops = bindingControllers({
      ...depsOf(consumer, clock, { metrics: this.metrics }),
      events: { record: (event) => void this.events.push(event), close: () => Promise.resolve() },
      runningControllers: {
        add: (controller) => manager.add(controller),
        remove: (controller) => manager.remove(controller),
      },
      connect: () => this.link,
      writeClient: (client) => client,
      version: 'v0.8.1',
      pollingMs: 15_000,
      bindable: undefined,
      bindableNamespaces: undefined,
    });
    for (const loop of loops) manager.add(loop);
    this.#running = manager.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async settle(ms = 2000): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      await settleIo(3);
      await this.clock.advance(100);
    }
  }

  /** Reading a kubeconfig takes real time. */
  async until(what: string, check: () => boolean): Promise<void> {
    const deadlineMs = systemClock.monotonic() + 10_000;
    while (!check()) {
      assert.ok(systemClock.monotonic() < deadlineMs, `${what}: not within 10 s`);
      await this.settle(100);
    }
  }

  bind(metadata: object = {}): void {
    const { metadata: own, ...rest } = bindingManifest();
    this.consumer.put(apiServiceBindings, { ...rest, metadata: { ...own, ...metadata } });
  }

  kettle(spec: object, name: string = blue.name): void {
    const at = { ...blue, name };
    const present = this.consumer.find(kettles, at);
    const metadata = present?.metadata ?? at;
    this.consumer.put(kettles, { ...present, apiVersion: 'kitchen.example/v1', kind: 'Kettle', metadata, spec });
  }

  /** Acts as the API server: establishes definitions, and deletes them once their objects are deleted. */
  #serveCrds(): void {
    const { consumer } = this;
    const later = (object: KubeObject, change: (object: KubeObject) => void): void =>
      queueMicrotask(() => {
        const now = consumer.find(customResourceDefinitions, object.metadata);
        if (now) change(now);
      });
    const objectsLeft = () => consumer.list(kettles).length > 0;
    consumer
      .watch({
        resource: customResourceDefinitions,
        project: (object) => {
          const view = commonView(object);
          return view && { ...view, object };
        },
      })
      .store.subscribe((event) => {
        if (event.type === 'deleted') return;
        const { object } = event.now;
        if (object.status === undefined) {
          later(object, (crd) =>
            consumer.put(customResourceDefinitions, {
              ...crd,
              metadata: { ...crd.metadata, finalizers: ['customresourcecleanup.apiextensions.k8s.io'] },
              status: { conditions: [{ type: 'Established', status: 'True' }], storedVersions: ['v1'] },
            }),
          );
        } else if (event.now.deleting && object.metadata.name === crdName) {
          for (const { metadata } of consumer.list(kettles)) void consumer.client.delete(kettles, metadata);
          later(object, ({ metadata }) => {
            if (!objectsLeft()) consumer.drop(customResourceDefinitions, metadata);
          });
        }
      });
    consumer.watch({ resource: kettles, project: commonView }).store.subscribe((event) => {
      const crd = consumer.find(customResourceDefinitions, { name: crdName });
      if (event.type === 'deleted' && crd?.metadata.deletionTimestamp && !objectsLeft()) {
        queueMicrotask(() => consumer.drop(customResourceDefinitions, { name: crdName }));
      }
    });
  }

  /** Acts as the backend: answers every APIServiceNamespace with a namespace. */
  #mapNamespaces(): void {
    const { provider } = this;
    provider.watch({ resource: apiServiceNamespaces, project: commonView }).store.subscribe((event) => {
      if (event.type !== 'added') return;
      queueMicrotask(() => {
        const found = provider.find(apiServiceNamespaces, { namespace: 'kb-acme', name: event.now.name });
        if (found) provider.put(apiServiceNamespaces, { ...found, status: { namespace: `kb-acme-${event.now.name}` } });
      });
    });
  }
}
