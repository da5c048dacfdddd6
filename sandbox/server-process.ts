import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Installation, install } from './installation.ts';
import type { PlaneClient } from './plane-client.ts';
import { freePorts } from './ports.ts';
import { until } from './wait.ts';

const program = fileURLToPath(new URL('../dist/drawbridge.js', import.meta.url));

export interface ServerOptions {
  /** Further flags; a later one wins over those that the process is started with anyway. */
  readonly flags?: readonly string[];
  /** Default: the one this runs on. */
  readonly node?: string;
  /** Default: the apiserver itself; give a proxy's URL to put faults in between. */
  readonly apiserver?: string;
  /** Default: a new one on free ports. */
  readonly installation?: Installation;
}

/** One line of the server's audit trail. */
export interface AuditLine {
  readonly event: string;
  readonly verdict: string;
  readonly who: { readonly user: string; readonly groups?: readonly string[] };
  readonly what: {
    readonly operation: string;
    readonly kind: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly [field: string]: unknown;
}

/** The built server (`npm run build`) as a child process, installed on a plane. It ends with this process at the latest. */
export class ServerProcess {
  readonly installation: Installation;
  readonly auditFile: string;
  readonly logFile: string;
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(
    fields: Pick<ServerProcess, 'installation' | 'auditFile' | 'logFile' | 'healthPort' | 'metricsPort'>,
    child: ChildProcess,
  ) {
    this.installation = fields.installation;
    this.auditFile = fields.auditFile;
    this.logFile = fields.logFile;
    this.healthPort = fields.healthPort;
    this.metricsPort = fields.metricsPort;
    this.#child = child;
    this.#exited = once(child, 'exit');
  }

  /** Resolves once `/readyz` says yes; rejects after 30 s, or when the process ends, with the end of its log. */
  static async start(plane: PlaneClient, options: ServerOptions = {}): Promise<ServerProcess> {
    const server = await ServerProcess.spawn(plane, options);
    await server.whenReady();
    return server;
  }

  /** Starts the process without waiting for it. */
  static async spawn(plane: PlaneClient, options: ServerOptions = {}): Promise<ServerProcess> {
    if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build`);
    const [port = 0, healthPort = 0, metricsPort = 0] = await freePorts(3);
    const installation = options.installation ?? (await install(plane, port));
    const kubeconfig = options.apiserver
      ? await plane.kubeconfigFor(installation.serverUser, ['system:serviceaccounts', 'system:authenticated'], {
          server: options.apiserver,
        })
      : installation.kubeconfig;
    const id = randomUUID().slice(0, 8);
    const auditFile = join(plane.directory, `audit-${id}.jsonl`);
    const logFile = join(plane.directory, `server-${id}.log`);
    const flags = [
      `--kubeconfig=${kubeconfig}`,
      `--port=${installation.port}`,
      '--bind-address=127.0.0.1',
      `--cert-file=${installation.certFile}`,
      `--key-file=${installation.keyFile}`,
      `--health-port=${healthPort}`,
      `--metrics-port=${metricsPort}`,
      `--audit-log=${auditFile}`,
      '--leader-elect=false',
      '--log-format=text',
      ...(options.flags ?? []),
    ];
    const child = spawn(options.node ?? process.execPath, [program, 'serve', ...flags], {
      stdio: ['ignore', 'inherit', openSync(logFile, 'a')],
    });
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    return new ServerProcess({ installation, auditFile, logFile, healthPort, metricsPort }, child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async whenReady(): Promise<void> {
    const look = async (): Promise<boolean> => {
      if (!this.running) throw new Error(`the server ended before it was ready:\n${await this.log()}`);
      return fetch(`http://127.0.0.1:${this.healthPort}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    };
    try {
      await until('the server to be ready', look, { timeoutMs: 30_000, everyMs: 20 });
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.log()}`);
    }
  }

  /** The audit lines so far that match. */
  async audit(matches: (line: AuditLine) => boolean = () => true): Promise<AuditLine[]> {
    const text = await readFile(this.auditFile, 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AuditLine)
      .filter(matches);
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
