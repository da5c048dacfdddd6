import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from './wait.ts';

const program = fileURLToPath(new URL('../dist/drawbridge.js', import.meta.url));

export interface Launch {
  /** The name of the process in errors and of its log file. */
  readonly name: string;
  /** The folder of its log. */
  readonly directory: string;
  /** The arguments after `serve`. */
  readonly flags: readonly string[];
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Node to run. Default: the one that runs this process. */
  readonly node?: string | undefined;
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Runs `serve` of the built program (`npm run build`) as a child process, which ends when this process ends. */
export class ProgramProcess {
  readonly logFile: string;
  readonly healthPort: number;
  readonly metricsPort: number;
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  protected constructor({
    name,
    directory,
    flags,
    healthPort,
    metricsPort,
    node = process.execPath,
    env = {},
  }: Launch) {
    if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build`);
    this.#name = name;
    this.logFile = join(directory, `${name}-${randomUUID().slice(0, 8)}.log`);
    this.healthPort = healthPort;
    this.metricsPort = metricsPort;
    const child = spawn(node, [program, 'serve', ...flags], {
      stdio: ['ignore', 'inherit', openSync(this.logFile, 'a')],
      env: { ...process.env, ...env },
    });
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    this.#child = child;
    this.#exited = once(child, 'exit');
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves once it may get traffic, as the kubelet finds out. Rejects after 30 s or when the process ends; the message contains the log. */
  async whenReady(): Promise<void> {
    const isReady = async (): Promise<boolean> => {
      if (!this.running) throw new Error(`the ${this.#name} ended before it was ready`);
      return fetch(`http://127.0.0.1:${this.healthPort}/readyz?exclude=policies`).then(
        (answer) => answer.ok,
        () => false,
      );
    };
    try {
      await until(`the ${this.#name} to be ready`, isReady, { timeoutMs: 30_000, everyMs: 20 });
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.log()}`);
    }
  }

  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** Stops it with SIGTERM. Resolves to the exit code. */
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
