import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ensureBinaries, ensureGoPrograms } from '../build/binaries.ts';
import { type Binaries, type NodeProgram, nodePrograms } from '../build/programs.ts';
import type { OnProgress } from '../build/progress.ts';
import { commandLines, type Ports } from '../commands.ts';
import { Component } from '../component.ts';
import {
  containersFolder,
  createDirectory,
  createPki,
  type PlaneRecord,
  readAuthority,
  readRecord,
  writeRecord,
} from '../layout.ts';
import type { Authority } from '../pki.ts';
import { PlaneClient } from '../plane-client.ts';
import { apiserverReady, defaultServiceAccountExists, nodeTakesPods } from '../readiness.ts';
import { until } from '../wait.ts';
import { Watchdog } from '../watchdog.ts';
import { apiserverFlags, containerdSocket, nodeCommandLines, nodeName, writeConfiguration } from './configuration.ts';
import { controlGroupFolders, createControlGroup, processesOf } from './control-group.ts';
import { ensureImages } from './images/images.ts';
import { Namespaces } from './namespaces.ts';
import { connect, hostOf } from './network.ts';
import { installPackages } from './packages.ts';

/** Programs of this machine and of the node, and the archives of its images. */
export interface NodeParts {
  readonly binaries: Binaries;
  readonly programs: Readonly<Record<NodeProgram, string>>;
  readonly images: readonly string[];
}

const controlPlane = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const runtime = ['containerd', 'kubelet', 'kube-proxy'] as const;
type ComponentName = (typeof controlPlane)[number] | (typeof runtime)[number];

const startLimitMs = 120_000;
/** Images take one gigabyte, and Pods may write as much; more, because the kubelet evicts Pods when memory is short. */
const roomInMemory = 8 * 1024 ** 3;
/** In the node's own network namespace, no other program has these ports. */
const ports: Ports = {
  etcd: 2379,
  etcdPeer: 2380,
  apiserver: 6443,
  controllerManager: 10_257,
  scheduler: 10_259,
  kwok: 0,
  kubelet: 10_250,
};
/** Where the programs of the node find runc, iptables, and mount. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Why a node cannot run here; undefined if it can. */
export const obstacle = (): string | undefined =>
  process.platform === 'linux' && process.getuid?.() === 0
    ? undefined
    : `a node needs Linux and root, for containers and network namespaces; this is ${process.platform}, user id ${process.getuid?.()}`;

/** Installs, builds, or finds in the cache what a node is made of. The first time, it takes about five minutes after `ensureBinaries`. */
export async function prepareNode(onProgress: OnProgress = () => undefined): Promise<NodeParts> {
  const reason = obstacle();
  if (reason !== undefined) throw new Error(reason);
  await installPackages(onProgress);
  const binaries = await ensureBinaries({ onProgress });
  const programs = await ensureGoPrograms(nodePrograms, { onProgress });
  return { binaries, programs, images: await ensureImages(onProgress) };
}

interface NodeRecord extends PlaneRecord {
  readonly binaries: PlaneRecord['binaries'] & { readonly ctr: string };
  /** The first process of its namespaces. */
  readonly namespaces: number;
}

/**
 * A Kubernetes node with its control plane: kubelet, kube-proxy, containerd, and runc run Pods in containers. It has a network of its own,
 * which only this machine reaches, and no registry: `importImage` brings images.
 */
export class RealNode extends PlaneClient {
  readonly #namespaces: Namespaces;
  readonly #controlGroup: string;
  readonly #ctr: string;

  protected constructor(directory: string, authority: Authority, record: NodeRecord, namespaces: Namespaces) {
    super(directory, authority, record);
    this.#namespaces = namespaces;
    this.#controlGroup = basename(directory);
    this.#ctr = record.binaries.ctr;
  }

  /** Uses the node that another process started, by its folder (`make node` prints it). */
  static async attach(directory: string): Promise<RealNode> {
    const record = (await readRecord(directory)) as NodeRecord;
    const node = new RealNode(directory, await readAuthority(directory), record, Namespaces.of(record.namespaces));
    if (!(await apiserverReady(node))) throw new Error(`the node in ${directory} does not answer at ${record.server}`);
    return node;
  }

  /** The address at which Pods reach this machine. */
  get host(): string {
    return hostOf(new URL(this.server).hostname);
  }

  /** Makes an image available to Pods, from an archive of `docker save`. */
  async importImage(archive: string): Promise<void> {
    await this.run(this.#ctr, ['--namespace=k8s.io', 'images', 'import', '--local', archive]);
  }

  /** Gives an image another name, as `kind load` does with one of this machine. */
  async tagImage(name: string, other: string): Promise<void> {
    await this.run(this.#ctr, ['--namespace=k8s.io', 'images', 'tag', '--force', name, other]);
  }

  /** Runs a program in the namespaces of the node; rejects if it fails. */
  async run(program: string, args: readonly string[]): Promise<string> {
    return (await this.#namespaces.run(program, args)).stdout;
  }

  /** Ids of the processes of a container of a Pod, as this machine counts them. */
  async processesOf(namespace: string, pod: string, container: string): Promise<number[]> {
    const { body } = await this.probe(`/api/v1/namespaces/${namespace}/pods/${pod}`);
    const { containerStatuses = [], ephemeralContainerStatuses = [] } = (body as PodObject).status ?? {};
    const all = [...containerStatuses, ...ephemeralContainerStatuses];
    const id = all.find(({ name }) => name === container)?.containerID?.replace('containerd://', '');
    return id === undefined ? [] : processesOf(this.#controlGroup, id);
  }

  /** Closes what this process opened. */
  async stop(): Promise<void> {
    await this.closeProxies();
  }
}

interface PodObject {
  readonly status?: {
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly containerID?: string;
}

/** Starts a node and resolves once Pods can run on it. It ends when this process ends, even by SIGKILL. */
export async function startNode(parts: NodeParts): Promise<RealNode> {
  const directory = await createDirectory('drawbridge-node-', roomInMemory);
  const controlGroups = await controlGroupFolders(basename(directory));
  const watchdog = new Watchdog(directory, controlGroups);
  await createControlGroup(controlGroups);
  await writeConfiguration({ directory, controlGroup: basename(directory) });
  const namespaces = await Namespaces.open(directory, watchdog);
  const { node: address } = await connect(namespaces);
  const authority = await createPki(directory, address);
  const { kubectl, helm } = parts.binaries;
  const record: NodeRecord = {
    server: `https://${address}:${ports.apiserver}`,
    binaries: { kubectl, helm, ctr: parts.programs.ctr },
    pid: process.pid,
    execUser: 'root',
    namespaces: namespaces.pid,
  };
  const node = new OwnedNode(directory, authority, record, { namespaces, watchdog, parts, address });
  try {
    await node.bringUp();
  } catch (error) {
    const tails = node.logTails();
    await node.stop();
    throw new Error(`the node did not start: ${(error as Error).message}\n${tails}`, { cause: error });
  }
  await writeRecord(directory, record);
  return node;
}

interface OwnedParts {
  readonly namespaces: Namespaces;
  readonly watchdog: Watchdog;
  readonly parts: NodeParts;
  readonly address: string;
}

class OwnedNode extends RealNode {
  readonly #components = new Map<ComponentName, Component>();
  readonly #owned: OwnedParts;
  #stopping: Promise<void> | undefined;

  constructor(directory: string, authority: Authority, record: NodeRecord, owned: OwnedParts) {
    super(directory, authority, record, owned.namespaces);
    this.#owned = owned;
    this.#define();
  }

  async bringUp(): Promise<void> {
    await this.#writeKubeconfigs();
    for (const name of ['etcd', 'kube-apiserver', 'containerd'] as const) this.#start(name);
    await this.#waitFor('kube-apiserver to be ready', () => apiserverReady(this));
    for (const name of ['kube-controller-manager', 'kube-scheduler', 'kube-proxy'] as const) this.#start(name);
    await this.kubectl([
      ...['create', 'clusterrolebinding', 'kubelet-api'],
      ...['--clusterrole=system:kubelet-api-admin', '--user=kube-apiserver-kubelet-client'],
    ]);
    const listens = (): Promise<boolean> =>
      this.run('test', ['-S', containerdSocket]).then(
        () => true,
        () => false,
      );
    await this.#waitFor('containerd', listens);
    for (const image of this.#owned.parts.images) await this.importImage(image);
    this.#start('kubelet');
    await this.#waitFor('the default ServiceAccount', () => defaultServiceAccountExists(this));
    await this.#waitFor('the node to be Ready', () => nodeTakesPods(this, nodeName));
  }

  override stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  logTails(): string {
    return [...this.#components.values()]
      .map((component) => `--- ${component.name}\n${component.logTail()}`)
      .join('\n');
  }

  async #end(): Promise<void> {
    await super.stop();
    const { namespaces, watchdog } = this.#owned;
    // The data is deleted, so nothing needs an orderly stop. Containers end with the namespaces.
    await namespaces.close();
    await Promise.all([...this.#components.values()].map((component) => component.kill()));
    await watchdog.done();
    for (const folder of [this.directory, containersFolder(this.directory)])
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #waitFor(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = async (): Promise<boolean> => {
      for (const component of this.#components.values())
        if (component.started && !component.running) throw new Error(`${component.name} ended`);
      return condition();
    };
    await until(what, holds, { timeoutMs: startLimitMs });
  }

  #start(name: ComponentName): void {
    this.#components.get(name)?.start();
  }

  #define(): void {
    const { namespaces, parts, address } = this.#owned;
    const { directory } = this;
    const flags = { directory, ports, apiserverFlags: apiserverFlags(address), etcdFlags: [] };
    const ofPlane = commandLines(flags);
    const ofNode = nodeCommandLines(directory, address);
    const define = (name: ComponentName, [program, ...args]: [string, ...string[]]): void => {
      const logFile = join(directory, 'logs', `${name}.log`);
      const env = { PATH: path, HOME: directory };
      this.#components.set(name, new Component({ name, program, args, env, logFile }, this.#owned.watchdog));
    };
    for (const name of controlPlane) {
      const more = name === 'kube-controller-manager' ? [`--flex-volume-plugin-dir=${join(directory, 'plugins')}`] : [];
      define(name, namespaces.words('network', parts.binaries[name], [...ofPlane[name], ...more]));
    }
    for (const name of runtime) define(name, namespaces.words('all', parts.programs[name], ofNode[name]));
  }

  async #writeKubeconfigs(): Promise<void> {
    const users: Readonly<Record<string, readonly [string, ...string[]]>> = {
      'kube-controller-manager': ['system:kube-controller-manager'],
      'kube-scheduler': ['system:kube-scheduler'],
      'kube-proxy': ['system:kube-proxy'],
      kubelet: [`system:node:${nodeName}`, 'system:nodes'],
    };
    await this.writeAdminKubeconfig();
    for (const [name, [user, ...groups]] of Object.entries(users))
      await this.writeKubeconfig(join(this.directory, 'kubeconfigs', `${name}.yaml`), user, groups);
  }
}
