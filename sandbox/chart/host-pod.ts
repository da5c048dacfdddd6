import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { PlaneClient } from '../plane-client.ts';
import { freePorts } from '../ports.ts';
import type { Container, PodManifest } from './pod-manifest.ts';
import { MountedVolume } from './pod-volumes.ts';

const builtProgram = fileURLToPath(new URL('../../dist/drawbridge.js', import.meta.url));
const tokenPath = '/var/run/secrets/kubernetes.io/serviceaccount';
const restartMs = 1000;
const podIp = '127.0.0.1';
/** Delay until nodes stop sending connections to a Pod that has left its Service. */
const endpointLagMs = 500;

/** The ports of the server by their names in the chart, and the flags that change them. */
const portFlags: Readonly<Record<string, string>> = {
  webhooks: 'port',
  callbacks: 'callback-port',
  gateway: 'gateway-port',
  health: 'health-port',
  metrics: 'metrics-port',
};

/** A folder of the container, and of this machine. */
interface Mount {
  readonly path: string;
  readonly folder: string;
}

/** The text with a path of this machine for one of the container. */
function translated(text: string, mounts: readonly Mount[]): string {
  const mount = mounts.find(({ path }) => text.includes(`${path}/`));
  return mount ? text.replace(mount.path, mount.folder) : text;
}

/**
 * Runs one Pod of the chart as a process of this machine, with its arguments and environment, the token of its ServiceAccount, and its
 * volumes as files. Maps its ports to free ones.
 */
export class HostPod {
  readonly manifest: PodManifest;
  readonly logFile: string;
  #endpoint = false;
  readonly #onEndpoint: () => void;
  readonly #plane: PlaneClient;
  readonly #program: string;
  readonly #folder: string;
  readonly #volumes: MountedVolume[];
  readonly #ports = new Map<string, number>();
  readonly #secretVariables = new Map<string, string>();
  #child: ChildProcess | undefined;
  /** How many of the last probes failed, without a success since. */
  #failedProbes = 0;
  #lastReport = '';
  #ending = false;
  #startedAt = '';

  /**
   * Calls `onEndpoint` when the Pod becomes an endpoint of its Service or stops being one. `programs`: paths of programs by image name;
   * the default is `dist/drawbridge.js`.
   */
  constructor(
    plane: PlaneClient,
    manifest: PodManifest,
    onEndpoint: () => void,
    programs: ReadonlyMap<string, string>,
  ) {
    this.#program = programs.get(manifest.spec.containers[0].image) ?? builtProgram;
    this.#onEndpoint = onEndpoint;
    this.manifest = manifest;
    this.#plane = plane;
    this.#folder = join(plane.directory, 'pods', manifest.metadata.uid);
    this.logFile = join(this.#folder, 'log');
    this.#volumes = (manifest.spec.volumes ?? []).map(
      (volume) => new MountedVolume(plane, manifest, volume, this.#folder),
    );
  }

  /** Whether its Service sends new connections to it. */
  get endpoint(): boolean {
    return this.#endpoint;
  }

  #setEndpoint(endpoint: boolean): void {
    if (endpoint === this.#endpoint) return;
    this.#endpoint = endpoint;
    this.#onEndpoint();
  }

  get name(): string {
    return this.manifest.metadata.name;
  }

  get #container(): Container {
    return this.manifest.spec.containers[0];
  }

  /** 0 before the start. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The port of this machine for a named port. */
  port(name: string): number {
    return this.#ports.get(name) ?? 0;
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** Waits for its volumes, as kubelet does, and starts it. */
  async start(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    while (!(await this.refreshFiles())) {
      if (this.#ending) return;
      await sleep(200);
    }
    const names = (this.#container.ports ?? []).map(({ name }) => name);
    const free = await freePorts(names.length);
    for (const [i, name] of names.entries()) this.#ports.set(name, free[i] ?? 0);
    await this.#writeKubeconfig();
    if (!this.#ending) this.#spawn();
  }

  /** Updates its Secrets and ConfigMaps. False while one is missing. */
  async refreshFiles(): Promise<boolean> {
    const found: boolean[] = [];
    for (const volume of this.#volumes) found.push(await volume.refresh());
    found.push(await this.#readSecretVariables());
    return found.every(Boolean);
  }

  /** Reads the variables whose values Secrets have. False while one is missing. */
  async #readSecretVariables(): Promise<boolean> {
    for (const { name, valueFrom } of this.#container.env ?? []) {
      const { secretKeyRef } = valueFrom ?? {};
      if (!secretKeyRef || this.#secretVariables.has(name)) continue;
      const url = `/api/v1/namespaces/${this.manifest.metadata.namespace}/secrets/${secretKeyRef.name}`;
      const { body } = await this.#plane.probe(url);
      const value = (body as { data?: Record<string, string> }).data?.[secretKeyRef.key];
      if (value === undefined) return false;
      this.#secretVariables.set(name, Buffer.from(value, 'base64').toString());
    }
    return true;
  }

  /** Runs the readiness probe and reports the result to the API. */
  async observe(): Promise<void> {
    if (this.#ending || this.#child === undefined) return;
    this.#failedProbes = (await this.#probe()) ? 0 : this.#failedProbes + 1;
    if (this.#ending) return;
    // As kubelet: a ready Pod stays ready until so many probes in a row have failed, which a busy machine alone can delay.
    const { failureThreshold = 3 } = this.#container.readinessProbe ?? {};
    const allowedFailures = this.#endpoint ? failureThreshold - 1 : 0;
    const ready = this.running && this.#failedProbes <= allowedFailures;
    this.#setEndpoint(ready);
    if (this.running) await this.#reportStatus('Running', ready);
  }

  /** Ends a deleted Pod as kubelet does: preStop, SIGTERM, SIGKILL; then removes it from the API. */
  async end(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const { terminationGracePeriodSeconds: seconds } = this.manifest.spec;
    const forceKill = sleep(seconds * 1000, undefined, { ref: false }).then(() => this.kill());
    const leftService = sleep(endpointLagMs).then(() => {
      this.#setEndpoint(false);
    });
    if (this.running) {
      await sleep((this.#container.lifecycle?.preStop?.sleep.seconds ?? 0) * 1000);
      await leftService;
      this.#child?.kill('SIGTERM');
      await Promise.race([this.#exited(), forceKill]);
    }
    const { namespace, name } = this.manifest.metadata;
    await this.#plane.call('DELETE', `/api/v1/namespaces/${namespace}/pods/${name}?gracePeriodSeconds=0`);
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#exited();
  }

  /** Stops managing the Pod, and kills its process. */
  async abandon(): Promise<void> {
    this.#ending = true;
    await this.kill();
  }

  async #exited(): Promise<void> {
    if (this.running && this.#child) await once(this.#child, 'exit');
  }

  #spawn(): void {
    const log = openSync(this.logFile, 'a');
    this.#startedAt = new Date().toISOString();
    // Keeps the flags of `node FLAGS /drawbridge.mjs`, and replaces node and the program by those of this machine.
    const nodeFlags = this.#container.command?.slice(1, -1) ?? [];
    const child = spawn(process.execPath, [...nodeFlags, this.#program, ...this.#args()], {
      env: this.#environment(),
      stdio: ['ignore', log, log],
    });
    this.#child = child;
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', (code) => {
      process.off('exit', endWithThisProcess);
      this.#setEndpoint(false);
      void this.#ended(code ?? 137);
    });
  }

  async #ended(code: number): Promise<void> {
    if (this.#ending) return;
    if (this.manifest.spec.restartPolicy === 'Never') {
      await this.#reportStatus(code === 0 ? 'Succeeded' : 'Failed', false, code);
      return;
    }
    await this.#reportStatus('Running', false, code);
    await sleep(restartMs);
    if (!this.#ending) this.#spawn();
  }

  /** Translates paths in the container to paths of this machine, and its ports to free ones. */
  #args(): string[] {
    const mounts = this.#mounts();
    const environment = this.#environment();
    const args = (this.#container.args ?? []).map((arg) => {
      return translated(arg, mounts).replaceAll(/\$\((\w+)\)/g, (_, name: string) => environment[name] ?? '');
    });
    return [...args, ...[...this.#ports].map(([name, port]) => `--${portFlags[name]}=${port}`)];
  }

  #mounts(): Mount[] {
    return (this.#container.volumeMounts ?? []).map(({ name, mountPath }) => {
      const folder = this.#volumes.find((volume) => volume.folder === join(this.#folder, name))?.folder;
      if (folder === undefined) throw new Error(`Pod ${this.name} mounts ${name}, which is none of its volumes`);
      return { path: mountPath, folder };
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const mounts = this.#mounts();
    const given = (this.#container.env ?? []).map(({ name, value }) => [
      name,
      // The only field that the chart reads is the address of the Pod.
      value === undefined ? (this.#secretVariables.get(name) ?? podIp) : translated(value, mounts),
    ]);
    return Object.fromEntries([
      ['PATH', process.env['PATH'] ?? ''],
      ['HOSTNAME', this.name],
      ['KUBECONFIG', join(this.#folder, 'kubeconfig')],
      ['DRAWBRIDGE_BIND_ADDRESS', podIp],
      ...given,
    ]) as NodeJS.ProcessEnv;
  }

  /** Replaces the in-cluster configuration, whose fixed paths cannot work here: all Pods share one file system. */
  async #writeKubeconfig(): Promise<void> {
    const account = this.#mounts().find(({ path }) => path === tokenPath)?.folder;
    if (account === undefined) return;
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'pod',
          cluster: { server: this.#plane.server, 'certificate-authority': join(account, 'ca.crt') },
        },
      ],
      users: [{ name: 'pod', user: { tokenFile: join(account, 'token') } }],
      contexts: [{ name: 'pod', context: { cluster: 'pod', user: 'pod' } }],
      'current-context': 'pod',
    };
    await writeFile(join(this.#folder, 'kubeconfig'), stringify(config));
  }

  async #probe(): Promise<boolean> {
    const probe = this.#container.readinessProbe?.httpGet;
    if (!probe) return true;
    const url = `http://127.0.0.1:${this.port(probe.port)}${probe.path}`;
    return fetch(url, { signal: AbortSignal.timeout(1000) }).then(
      (answer) => answer.ok,
      () => false,
    );
  }

  /** Reports each state once. */
  async #reportStatus(phase: 'Running' | 'Succeeded' | 'Failed', ready: boolean, exitCode?: number): Promise<void> {
    const report = `${phase} ${ready} ${exitCode} ${this.pid}`;
    if (report === this.#lastReport) return;
    this.#lastReport = report;
    const { namespace, name } = this.manifest.metadata;
    const url = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const now = new Date().toISOString();
    const condition = (type: string, status: boolean): object => ({
      type,
      status: status ? 'True' : 'False',
      lastTransitionTime: now,
    });
    const state =
      exitCode === undefined
        ? { running: { startedAt: this.#startedAt } }
        : {
            terminated: {
              exitCode,
              reason: exitCode === 0 ? 'Completed' : 'Error',
              startedAt: this.#startedAt,
              finishedAt: now,
            },
          };
    const { image, name: container } = this.#container;
    await this.#plane.call('PATCH', `${url}/status`, {
      status: {
        phase,
        startTime: this.#startedAt,
        podIP: '127.0.0.1',
        podIPs: [{ ip: '127.0.0.1' }],
        conditions: [
          condition('PodScheduled', true),
          condition('Initialized', true),
          condition('ContainersReady', ready),
          condition('Ready', ready),
        ],
        containerStatuses: [{ name: container, image, imageID: '', ready, started: true, restartCount: 0, state }],
      },
    });
  }
}
