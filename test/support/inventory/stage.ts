import { InventoryServer, type InventoryServerOptions } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { clusterInventories, componentReconcilers, reconcileRuns } from '../../../src/api/inventory/names.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { entryView } from '../../../src/inventory/stores/kube-inventory-store.ts';
import { recordIn } from '../../../src/inventory/stores/run-object.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { sharedPlane, testNamespace } from '../plane.ts';
import { type Script, ScriptedComponent } from './scripted-component.ts';

const patience = { timeoutMs: 60_000, everyMs: 20 };

/** Stage for inventory tests: the built server on the shared plane, and scripted components. */
export class InventoryStage {
  readonly plane: Plane;
  readonly namespace: string;
  readonly server: InventoryServer;
  readonly cluster: OpenCluster;
  /** Components by name; only scripted ones must be closed. */
  readonly #components = new Map<string, ScriptedComponent | undefined>();

  private constructor(plane: Plane, namespace: string, server: InventoryServer, cluster: OpenCluster) {
    this.plane = plane;
    this.namespace = namespace;
    this.server = server;
    this.cluster = cluster;
  }

  static async open(
    flags: readonly string[] = [],
    options: Pick<InventoryServerOptions, 'front' | 'apiserver'> = {},
  ): Promise<InventoryStage> {
    const plane = await sharedPlane();
    const namespace = await testNamespace('inventory', plane);
    const server = await InventoryServer.start(plane, { ...options, flags, namespaces: [namespace] });
    const credentials = await fileCredentials(await plane.kubeconfigFor('fleet-admin', ['system:masters']));
    const cluster = openCluster(credentials, { clock: systemClock, connections: 32 });
    return new InventoryStage(plane, namespace, server, cluster);
  }

  /** Starts and registers a component. */
  async component(
    name: string,
    script: Script,
    spec: Readonly<Record<string, unknown>> = {},
  ): Promise<ScriptedComponent> {
    const component = await ScriptedComponent.start(script);
    await this.register(name, component.url, spec);
    this.#components.set(name, component);
    return component;
  }

  /** Registers a component that is already running. */
  async register(name: string, url: string, spec: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.cluster.client.create(componentReconcilers, {
      apiVersion: apiVersionOf(componentReconcilers),
      kind: componentReconcilers.kind,
      metadata: { name },
      spec: { endpoint: { url }, ...spec },
    });
    this.#components.set(name, undefined);
    // A registration of the same name may have been deleted just before: its endpoint is not called any more.
    if (this.server.running) await this.until(`the server to know registration ${name}`, () => this.#isKnown(name));
  }

  async #isKnown(name: string): Promise<boolean> {
    const registration = await this.cluster.client.get(componentReconcilers, { name });
    return 'status' in registration;
  }

  /** Creates an entry. */
  async entry(name: string, spec: Readonly<Record<string, unknown>> = {}): Promise<Entry> {
    return viewed(
      await this.cluster.client.create(clusterInventories, {
        apiVersion: apiVersionOf(clusterInventories),
        kind: clusterInventories.kind,
        metadata: { namespace: this.namespace, name },
        spec,
      }),
    );
  }

  async get(name: string): Promise<Entry> {
    return viewed(await this.cluster.client.get(clusterInventories, { namespace: this.namespace, name }));
  }

  async patch(name: string, patch: unknown, subresource?: 'status'): Promise<Entry> {
    const options = subresource === undefined ? {} : { subresource };
    const at = { namespace: this.namespace, name };
    return viewed(await this.cluster.client.mergePatch(clusterInventories, at, patch, options));
  }

  async delete(name: string): Promise<void> {
    await this.cluster.client.delete(clusterInventories, { namespace: this.namespace, name });
  }

  async records() {
    const { items } = await this.cluster.client.list(reconcileRuns, { namespace: this.namespace });
    return items.flatMap((item) => recordIn(item)?.record ?? []);
  }

  async isReady(name: string): Promise<boolean> {
    return (await this.get(name)).conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  }

  async ready(...names: readonly string[]): Promise<void> {
    for (const name of names) await this.until(`${name} to be Ready`, () => this.isReady(name));
  }

  async gone(name: string): Promise<void> {
    await this.until(`${name} to be gone`, () =>
      this.get(name).then(
        () => false,
        (error: unknown) => isNotFound(error),
      ),
    );
  }

  async until(what: string, check: () => boolean | Promise<boolean>, timeoutMs = patience.timeoutMs): Promise<void> {
    try {
      await until(what, async () => await check(), { ...patience, timeoutMs });
    } catch (error) {
      const log = (await this.server.log()).split('\n').slice(-30).join('\n');
      throw new Error(`${(error as Error).message}; the server's log ends with\n${log}`);
    }
  }

  /** Deletes all entries and registrations, so that another test can use the stage. */
  async clear(): Promise<void> {
    const { client } = this.cluster;
    const { items } = await client.list(clusterInventories, { namespace: this.namespace });
    for (const component of this.#components.values()) {
      if (!component) continue;
      component.delayMs = 0;
      component.teardown = () => ({ outcome: 'Deleted' });
    }
    for (const { metadata } of items) await client.delete(clusterInventories, metadata);
    for (const { metadata } of items) await this.gone(metadata.name);
    for (const [name, component] of this.#components) {
      await this.until(`registration ${name} to be deleted`, () =>
        client.delete(componentReconcilers, { name }).then(
          () => true,
          (error: Error) => {
            // The record of a run may outlive its entry for a moment.
            if (/ HasRuns: /.test(error.message)) return false;
            if (isNotFound(error)) return true;
            throw error;
          },
        ),
      );
      component?.close();
    }
    this.#components.clear();
  }

  async close(): Promise<void> {
    try {
      if (!this.server.running) await this.server.begin();
      await this.clear();
    } finally {
      for (const component of this.#components.values()) component?.close();
      await this.server.stop();
      // The kinds stay for the next stage, because the API server takes seconds to replace them.
      await this.server.unregister();
      await this.plane.kubectl(['delete', 'namespace', this.namespace, '--wait=false']);
      await this.cluster.close();
    }
  }
}

function viewed(object: KubeObject): Entry {
  const entry = entryView(object);
  if (!entry) throw new Error(`no ClusterInventory: ${JSON.stringify(object)}`);
  return entry;
}
