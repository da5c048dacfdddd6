import { rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { ensureBinaries } from './build/binaries.ts';
import { type Binaries, type ComponentProgram, componentPrograms } from './build/programs.ts';
import type { OnProgress } from './build/progress.ts';
import { commandLines, type Ports } from './commands.ts';
import { Component } from './component.ts';
import {
  containersFolder,
  createDirectory,
  createPki,
  type PlaneRecord,
  readAuthority,
  readRecord,
  writeRecord,
} from './layout.ts';
import { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { apiserverReady, applyCrds, createNode, defaultServiceAccountExists, nodeTakesPods } from './readiness.ts';
import { kubernetesVersion } from './versions.ts';
import { until } from './wait.ts';
import { Watchdog } from './watchdog.ts';

export type ComponentName = ComponentProgram;

export interface PlaneOptions {
  /** Components to run; default all. etcd and kube-apiserver always run. */
  readonly components?: readonly ComponentName[];
  readonly apiserverFlags?: readonly string[];
  readonly etcdFlags?: readonly string[];
  /** Files or folders of CRDs, applied before the controller manager starts, so that it knows them from the start. */
  readonly crds?: readonly string[];
  readonly onProgress?: OnProgress;
}

/** A throwaway control plane on loopback. */
export interface Plane extends PlaneClient {
  /** A component of this plane. Throws if the plane does not run it, or belongs to another process. */
  component(name: ComponentName): Component;
  /**
   * Ends all components and the processes of containers, and removes the folders; on a plane of another process, closes only the
   * proxies. Safe to call again.
   */
  stop(): Promise<void>;
}

const startLimitMs = 60_000;
const attempts = 3;
const nodeName = 'sandbox-node';
/** The user of this machine that runs commands exec'ed into Pods; sandbox/kubelet chooses it. */
const execUser = process.getuid?.() === 0 ? 'nobody' : userInfo().username;

/**
 * Starts a control plane and resolves once Pods can run on it. The plane ends when this process ends, even by SIGKILL.
 * Rejects if a component takes longer than 60 s; the message names the missing condition and the last log lines of the components.
 */
export async function startPlane(options: PlaneOptions = {}): Promise<Plane> {
  const binaries = await ensureBinaries(options.onProgress === undefined ? {} : { onProgress: options.onProgress });
  for (let attempt = 1; ; attempt += 1) {
    const plane = await OwnedPlane.prepare(binaries, options);
    try {
      await plane.bringUp(options);
      return plane;
    } catch (error) {
      const tails = plane.logTails();
      await plane.stop();
      // Another process took a port before the component listened on it.
      if (attempt < attempts && /address already in use/.test(tails)) continue;
      throw new Error(`the control plane did not start: ${(error as Error).message}\n${tails}`, { cause: error });
    }
  }
}

/** Uses a plane that another process started, by its folder (`make sandbox` prints it). */
export async function attachPlane(directory: string): Promise<Plane> {
  const record = await readRecord(directory);
  const plane = new AttachedPlane(directory, await readAuthority(directory), record);
  if (!(await apiserverReady(plane))) throw new Error(`the plane in ${directory} does not answer at ${record.server}`);
  return plane;
}

class AttachedPlane extends PlaneClient implements Plane {
  component(name: ComponentName): Component {
    throw new Error(`${name} belongs to another process: a test that breaks a plane must start its own`);
  }

  async stop(): Promise<void> {
    await this.closeProxies();
  }
}

class OwnedPlane extends PlaneClient implements Plane {
  readonly #components = new Map<ComponentName, Component>();
  readonly #watchdog: Watchdog;
  #stopping: Promise<void> | undefined;

  private constructor(directory: string, authority: PlaneClient['authority'], record: PlaneRecord, watchdog: Watchdog) {
    super(directory, authority, record);
    this.#watchdog = watchdog;
  }

  static async prepare(binaries: Binaries, options: PlaneOptions): Promise<OwnedPlane> {
    const directory = await createDirectory();
    const watchdog = new Watchdog(directory);
    const [authority, ports] = await Promise.all([createPki(directory), choosePorts()]);
    const record = {
      server: `https://127.0.0.1:${ports.apiserver}`,
      binaries: { kubectl: binaries.kubectl, helm: binaries.helm },
      pid: process.pid,
      execUser,
    };
    const plane = new OwnedPlane(directory, authority, record, watchdog);
    await plane.#writeKubeconfigs();
    plane.#define(binaries, ports, options);
    return plane;
  }

  async bringUp(options: PlaneOptions): Promise<void> {
    this.#start('etcd');
    this.#start('kube-apiserver');
    await this.#waitFor('kube-apiserver to be ready', () => apiserverReady(this));
    await this.#checkVersion();
    await applyCrds(this, options.crds ?? []);
    this.#start('kube-controller-manager');
    this.#start('kube-scheduler');
    this.#start('sandbox-kubelet');
    this.#start('kwok');
    if (this.#components.has('kube-controller-manager')) {
      await this.#waitFor('the default ServiceAccount', () => defaultServiceAccountExists(this));
    }
    if (this.#components.has('kwok')) await this.#bringUpNode();
    await writeRecord(this.directory, {
      server: this.server,
      binaries: this.binaries,
      pid: process.pid,
      execUser: this.execUser,
    });
  }

  component(name: ComponentName): Component {
    const component = this.#components.get(name);
    if (component === undefined) throw new Error(`this plane runs no ${name}`);
    return component;
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  logTails(): string {
    const withLog = [...this.#components.values()].filter((component) => component.logTail().trim() !== '');
    return withLog.map((component) => `--- ${component.name}\n${component.logTail()}`).join('\n');
  }

  async #end(): Promise<void> {
    await this.closeProxies();
    // The data is deleted, so no component needs an orderly stop.
    await Promise.all([...this.#components.values()].map((component) => component.kill()));
    await this.#watchdog.done();
    for (const folder of [this.directory, containersFolder(this.directory)]) {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  async #bringUpNode(): Promise<void> {
    await createNode(this, nodeName);
    const tainted = !this.#components.has('kube-controller-manager');
    if (!tainted) await this.#waitFor('the node to be Ready', () => nodeTakesPods(this, nodeName));
  }

  async #waitFor(what: string, condition: () => Promise<boolean>): Promise<void> {
    const holds = async (): Promise<boolean> => {
      for (const component of this.#components.values()) {
        if (component.started && !component.running) throw new Error(`${component.name} ended`);
      }
      return condition();
    };
    await until(what, holds, { timeoutMs: startLimitMs });
  }

  async #checkVersion(): Promise<void> {
    // An API server that this variable names may be of another version.
    if (process.env['TEST_ASSET_KUBE_APISERVER']) return;
    const { gitVersion = 'of an unknown version' } = (await this.probe('/version')).body as { gitVersion?: string };
    const minor = kubernetesVersion.replace(/\d+$/, '');
    if (!gitVersion.startsWith(minor)) throw new Error(`the API server is ${gitVersion}; allowed: ${minor}x`);
  }

  #start(name: ComponentName): void {
    this.#components.get(name)?.start();
  }

  #define(binaries: Binaries, ports: Ports, options: PlaneOptions): void {
    const lines = commandLines({
      directory: this.directory,
      ports,
      apiserverFlags: options.apiserverFlags ?? [],
      etcdFlags: options.etcdFlags ?? [],
    });
    const wanted = new Set<ComponentName>(['etcd', 'kube-apiserver', ...(options.components ?? componentPrograms)]);
    for (const name of componentPrograms.filter((one) => wanted.has(one))) {
      const command = {
        name,
        program: binaries[name],
        args: lines[name],
        // Without proxy settings: the components call each other.
        env: { PATH: process.env['PATH'], HOME: this.directory },
        logFile: join(this.directory, 'logs', `${name}.log`),
      };
      const ready = (): Promise<void> => this.#waitFor('kube-apiserver to be ready', () => apiserverReady(this));
      const restartable = name === 'kube-apiserver' ? { ...command, ready } : command;
      this.#components.set(name, new Component(restartable, this.#watchdog));
    }
  }

  async #writeKubeconfigs(): Promise<void> {
    const path = (name: string): string => join(this.directory, 'kubeconfigs', `${name}.yaml`);
    await Promise.all([
      this.writeAdminKubeconfig(),
      this.writeKubeconfig(path('kube-controller-manager'), 'system:kube-controller-manager', []),
      this.writeKubeconfig(path('kube-scheduler'), 'system:kube-scheduler', []),
      this.writeKubeconfig(path('kwok'), 'sandbox:kwok', ['system:masters']),
    ]);
  }
}

async function choosePorts(): Promise<Ports> {
  const [etcd = 0, etcdPeer = 0, apiserver = 0, controllerManager = 0, scheduler = 0, kwok = 0, kubelet = 0] =
    await freePorts(7);
  return { etcd, etcdPeer, apiserver, controllerManager, scheduler, kwok, kubelet };
}
