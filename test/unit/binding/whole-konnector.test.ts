import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceExports,
  apiServiceNamespaces,
  boundSchemas,
  clusterBindings,
  unbindPolicyAnnotation,
} from '../../../src/api/binding/names.ts';
import { type KubeObject, keyOf } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../src/api/resources.ts';
import { bindingControllers } from '../../../src/binding/controllers.ts';
import { commonView } from '../../../src/binding/stores/common-view.ts';
import { openConsumerStores } from '../../../src/binding/stores/consumer-stores.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { kubeconfigText, loadYamlOnce } from '../../support/binding/konnector-stage.ts';
import { MemoryCluster } from '../../support/binding/memory-cluster.ts';
import { conditionsOf, crdName, kettles } from '../../support/binding/memory-stage.ts';
import {
  bindingManifest,
  boundSchemaManifest,
  clusterBindingManifest,
  exportManifest,
} from '../../support/binding/objects.ts';
import { settleIo } from '../../support/io.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const blue = { namespace: 'team-a', name: 'blue' };
const copyOfBlue = { namespace: 'kb-acme-team-a', name: 'blue' };

/** All loops of the konnector at once, between two clusters in memory. */
class Whole {
  readonly clock = new SimulatedClock();
  readonly consumer = new MemoryCluster(this.clock);
  readonly provider = new MemoryCluster(this.clock);
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
      consumer,
      client: consumer.client,
      stores: openConsumerStores(consumer).stores,
      events: { record() {}, close: () => Promise.resolve() },
      clock,
      log: noLog,
      metrics: createMetrics(),
      running: { add: (controller) => manager.add(controller), remove: (controller) => manager.remove(controller) },
      connect: () => ({
        client: this.provider.client,
        watch: (spec) => this.provider.watch(spec),
        identity: () => Promise.resolve('uid-of-kb-acme'),
        close: () => Promise.resolve(),
      }),
      guard: (client) => client,
      version: 'v0.8.1',
      pollingMs: 15_000,
      allowed: undefined,
      allowedNamespaces: undefined,
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

  /** What is read of a kubeconfig takes real time. */
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

  kettle(spec: object): void {
    const present = this.consumer.find(kettles, blue);
    const metadata = present?.metadata ?? blue;
    this.consumer.put(kettles, { ...present, apiVersion: 'kitchen.example/v1', kind: 'Kettle', metadata, spec });
  }

  /** The API server establishes definitions, and lets them go when their objects have gone. */
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

  /** The backend gives every APIServiceNamespace a namespace. */
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

describe('the whole konnector', () => {
  let whole: Whole;
  before(loadYamlOnce);
  beforeEach(async () => {
    whole = new Whole();
    whole.start();
    whole.bind();
    await whole.until('the binding is ready', () => conditionsOf(binding())['Ready']?.status === 'True');
  });
  afterEach(() => whole.stop());

  const binding = () => whole.consumer.find(apiServiceBindings, { name: 'kettles' });
  const copy = () => whole.provider.find(kettles, copyOfBlue);

  it('binds, and keeps an object and its status in step', async () => {
    whole.kettle({ litres: 1 });
    await whole.until('the copy is there', () => copy() !== undefined);
    assert.deepEqual(copy()?.spec, { litres: 1 });
    const made = copy();
    assert.ok(made);
    whole.provider.put(kettles, { ...made, status: { hot: true } });
    await whole.settle();
    assert.deepEqual(whole.consumer.find(kettles, blue)?.status, { hot: true });
    const writes = [whole.consumer.writes.length, whole.provider.writes.length];
    await whole.settle(60_000);
    assert.deepEqual([whole.consumer.writes.length, whole.provider.writes.length], writes);
  });

  it('shares the Secrets that are claimed: those that an object refers to, and those with a label', async () => {
    const secret = (name: string, labels = {}): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'team-a', name, labels },
      data: { key: 'dmFsdWU=' },
    });
    for (const name of ['referred', 'private']) whole.consumer.put(secrets, secret(name));
    whole.consumer.put(secrets, secret('labelled', { app: 'kettle' }));
    whole.kettle({ secretRefs: [{ name: 'referred', namespace: 'team-a' }] });
    const shared = (): string[] => whole.provider.list(secrets).map(({ metadata }) => keyOf(metadata));
    await whole.until('both are there', () => shared().length === 2);
    await whole.settle();
    assert.deepEqual(shared().sort(), ['kb-acme-team-a/labelled', 'kb-acme-team-a/referred']);
    whole.consumer.drop(secrets, { namespace: 'team-a', name: 'labelled' });
    await whole.until('one is gone', () => shared().length === 1);
  });

  for (const policy of ['Delete', 'Orphan']) {
    it(`unbinds with the policy ${policy} and leaves nothing here`, async () => {
      whole.kettle({ litres: 1 });
      await whole.until('the copy is there', () => copy() !== undefined);
      whole.bind({ ...binding()?.metadata, annotations: { [unbindPolicyAnnotation]: policy } });
      await whole.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
      await whole.until('the binding is gone', () => binding() === undefined);
      assert.equal(whole.consumer.find(customResourceDefinitions, { name: crdName }), undefined);
      assert.deepEqual(
        whole.consumer.list(kettles).map(({ metadata }) => keyOf(metadata)),
        [],
      );
      assert.equal(copy() !== undefined, policy === 'Orphan');
    });
  }

  it('unbinds what the provider has taken back', async () => {
    whole.kettle({ litres: 1 });
    await whole.until('the copy is there', () => copy() !== undefined);
    whole.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
    await whole.settle();
    assert.deepEqual(whole.consumer.find(kettles, blue)?.metadata.finalizers ?? [], []);
    assert.equal(conditionsOf(binding())['Connected']?.reason, 'APIServiceExportNotFound');
    await whole.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
    await whole.until('the binding is gone', () => binding() === undefined);
    assert.ok(copy());
  });
});
