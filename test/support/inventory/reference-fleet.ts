import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import type { InventoryServer } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { whenServed } from '../../../sandbox/served.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { referenceComponents } from '../../../src/inventory/components/reference-components.ts';
import type { Component } from '../../../src/inventory/ports.ts';
import { tokenReviewAuthenticator } from '../../../src/inventory/sdk/callers.ts';
import { serveComponent } from '../../../src/inventory/sdk/component-server.ts';
import { httpTransports } from '../../../src/inventory/sdk/http-transports.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { SimulatedCloud } from './cloud.ts';
import { cloudCrds, serviceCrds } from './cloud-kinds.ts';
import { inventoryExample } from './examples.ts';

const clock = systemClock;

export interface ReferenceFleetOptions {
  readonly management: Plane;
  readonly managed: Plane;
  readonly server: InventoryServer;
  /** Server URL in kubeconfigs. Default: that of the managed plane. */
  readonly managedServer?: string;
  /** Duration of each step of the cloud. Default 200 ms. */
  readonly cloudDelayMs?: number;
}

/** The reference components as separate programs over HTTP, with a simulated cloud. A second plane is the managed cluster. */
export class ReferenceFleet {
  readonly cloud: SimulatedCloud;
  /** Registrations of the examples with local addresses. */
  readonly registrations: readonly KubeObject[];
  /** Called for each call, with the UID of the entry. */
  onCall: (component: string, entryUid: string) => void = () => {};
  readonly #plane: Plane;
  readonly #managedPlane: Plane;
  readonly #closers: (() => unknown)[];

  private constructor(
    { management, managed }: ReferenceFleetOptions,
    cloud: SimulatedCloud,
    registrations: readonly KubeObject[],
    closers: (() => unknown)[],
  ) {
    this.#plane = management;
    this.#managedPlane = managed;
    this.cloud = cloud;
    this.registrations = registrations;
    this.#closers = closers;
  }

  /** Starts the components without registrations. */
  static async start(options: ReferenceFleetOptions): Promise<ReferenceFleet> {
    const { management, managed, managedServer = managed.server, server, cloudDelayMs = 200 } = options;
    await applied(management, cloudCrds);
    await applied(managed, serviceCrds);
    const credentials = await fileCredentials(await management.kubeconfigFor('cloud', ['system:masters']));
    const cluster: OpenCluster = openCluster(credentials, { clock });
    const cloud = new SimulatedCloud({
      cluster,
      clock,
      delayMs: cloudDelayMs,
      kubeconfig: () => adminKubeconfig(managed, 'shoot-admin', managedServer),
    });
    await cloud.start();
    const { ca } = (await credentials.connectionAuth()).tls;
    const addresses = { apiUrl: management.server, apiCa: ca?.toString(), callbackUrl: server.callbackUrl };
    const transports = httpTransports({ ...addresses, apiTls: ca ? { ca } : {}, callbackCa: undefined }, clock);
    const connect = (managedCredentials: Parameters<typeof openCluster>[0]) =>
      openCluster(managedCredentials, { clock });
    const components = referenceComponents({ management: cloud.client, connect, clock });
    const urls = new Map<string, string>();
    const closers: (() => unknown)[] = [];
    let fleet: ReferenceFleet | undefined;
    for (const reference of components.values()) {
      const component: Component = {
        name: reference.name,
        reconcile: (run) => {
          fleet?.onCall(reference.name, run.request.entry.id);
          return reference.reconcile(run);
        },
      };
      const callers = tokenReviewAuthenticator({
        credentials,
        component: component.name,
        serverNamespace: server.namespace,
        clock,
      });
      const tls = undefined;
      const place = { host: '127.0.0.1', port: 0 };
      const served = await serveComponent({
        component,
        callers,
        addresses,
        transports,
        tls,
        ...place,
        clock,
        log: noLog,
      });
      urls.set(component.name, `http://127.0.0.1:${served.port}`);
      closers.push(
        () => served.close(),
        () => callers.close(),
      );
    }
    closers.push(
      () => transports.close(),
      () => cloud.stop(),
      () => cluster.close(),
    );
    const registrations = inventoryExample('components.yaml').map((object) => ({
      ...object,
      spec: { ...(object.spec as object), endpoint: { url: urls.get(object.metadata.name) } },
    }));
    fleet = new ReferenceFleet(options, cloud, registrations, closers);
    return fleet;
  }

  async register(changes: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}): Promise<void> {
    const changed = this.registrations.map((object) => ({
      ...object,
      spec: { ...(object.spec as object), ...changes[object.metadata.name] },
    }));
    await this.#plane.kubectl(['apply', '-f', '-'], { input: manifests(changed) });
  }

  async unregister(): Promise<void> {
    const names = this.registrations.map(({ metadata }) => metadata.name);
    await this.#plane.kubectl(['delete', 'componentreconcilers', '--ignore-not-found', ...names]);
  }

  /** Stops the components and the cloud. The registrations stay. */
  async close(): Promise<void> {
    for (const close of this.#closers) await close();
  }

  /** Deletes the CRDs of other projects. */
  async uninstall(): Promise<void> {
    const names = (crds: readonly KubeObject[]): string[] => crds.map(({ metadata }) => metadata.name);
    await this.#plane.kubectl(['delete', 'crd', '--ignore-not-found', '--wait=false', ...names(cloudCrds)]);
    await this.#managedPlane.kubectl(['delete', 'crd', '--ignore-not-found', '--wait=false', ...names(serviceCrds)]);
  }
}

const manifests = (objects: readonly unknown[]): string => objects.map((object) => stringify(object)).join('---\n');

async function applied(plane: Plane, crds: readonly KubeObject[]): Promise<void> {
  await plane.kubectl(['apply', '-f', '-'], { input: manifests(crds) });
  await Promise.all(crds.map(({ metadata }) => whenServed(plane, metadata.name)));
}

/** Issues a new kubeconfig with its own certificate. */
export async function adminKubeconfig(plane: Plane, user: string, server = plane.server): Promise<string> {
  return readFile(await plane.kubeconfigFor(user, ['system:masters'], { server }), 'utf8');
}
