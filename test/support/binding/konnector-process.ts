import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from '../../../sandbox/plane-client.ts';
import { freePorts } from '../../../sandbox/ports.ts';
import { until } from '../../../sandbox/wait.ts';
import { konnectorNamespace } from './konnector-rights.ts';

const program = fileURLToPath(new URL('../../../dist/drawbridge.js', import.meta.url));

export interface KonnectorOptions {
  /** Path of the kubeconfig of the consumer. */
  readonly kubeconfig: string;
  /** Further flags; a later one wins over those that the process is started with anyway. */
  readonly flags?: readonly string[];
}

/** The built program (`npm run build`) as a konnector in a child process. It ends with this process at the latest. */
export class KonnectorProcess {
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly logFile: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(ports: readonly [number, number], logFile: string, child: ChildProcess) {
    [this.healthPort, this.metricsPort] = ports;
    this.logFile = logFile;
    this.#child = child;
    this.#exited = once(child, 'exit');
  }

  /** Resolves once `/readyz` says yes; rejects after 30 s, or when the process ends, with its log. */
  static async start(plane: PlaneClient, options: KonnectorOptions): Promise<KonnectorProcess> {
    const konnector = await KonnectorProcess.spawn(plane, options);
    await konnector.whenReady();
    return konnector;
  }

  /** Starts the process without waiting for it. */
  static async spawn(plane: PlaneClient, { kubeconfig, flags = [] }: KonnectorOptions): Promise<KonnectorProcess> {
    if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build`);
    const [healthPort = 0, metricsPort = 0] = await freePorts(2);
    const logFile = join(plane.directory, `konnector-${randomUUID().slice(0, 8)}.log`);
    const args = [
      'serve',
      '--features=binding',
      `--kubeconfig=${kubeconfig}`,
      `--server-address=127.0.0.1:${healthPort}`,
      '--bind-address=127.0.0.1',
      `--metrics-port=${metricsPort}`,
      `--lease-namespace=${konnectorNamespace}`,
      '--leader-elect=false',
      '--log-format=text',
      ...flags,
    ];
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'ignore', openSync(logFile, 'a')] });
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    return new KonnectorProcess([healthPort, metricsPort], logFile, child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async whenReady(): Promise<void> {
    const look = async (): Promise<boolean> => {
      if (!this.running) throw new Error('the konnector ended before it was ready');
      return fetch(`http://127.0.0.1:${this.healthPort}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    };
    try {
      await until('the konnector to be ready', look, { timeoutMs: 30_000, everyMs: 20 });
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.log()}`);
    }
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** Graceful: resolves to the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill('SIGTERM');
    await this.#exited;
    return this.#child.exitCode;
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}
