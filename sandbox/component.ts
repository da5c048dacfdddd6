import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { until } from './wait.ts';
import type { Watchdog } from './watchdog.ts';

export interface Command {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Receives standard output and error, appended. */
  readonly logFile: string;
  /** Resolves once the running component serves. */
  readonly ready?: () => Promise<void>;
}

const gracefulMs = 10_000;

/** One process of a plane. Every method resolves once its effect is complete. */
export class Component {
  readonly name: string;
  readonly #command: Command;
  readonly #watchdog: Watchdog;
  #child: ChildProcess | undefined;
  #ended = false;

  constructor(command: Command, watchdog: Watchdog) {
    this.name = command.name;
    this.#command = command;
    this.#watchdog = watchdog;
  }

  /** Process id; throws while the component does not run. */
  get pid(): number {
    const pid = this.running ? this.#child?.pid : undefined;
    if (pid === undefined) throw new Error(`${this.name} is not running:\n${this.logTail()}`);
    return pid;
  }

  /** Whether the component should run: `start` was called, and neither `stop` nor `kill` since. */
  get started(): boolean {
    return this.#child !== undefined && !this.#ended;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  start(): void {
    const log = openSync(this.#command.logFile, 'a');
    const child = spawn(this.#command.program, this.#command.args, {
      env: this.#command.env,
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    // A finished test run must not wait for its plane; the watchdog ends the remaining processes.
    child.unref();
    child.on('error', () => undefined);
    const pid = child.pid;
    if (pid !== undefined) {
      this.#watchdog.watch(pid);
      child.once('exit', () => this.#watchdog.forget(pid));
    }
    this.#child = child;
    this.#ended = false;
  }

  /** Freezes the process (SIGSTOP): its connections stay open, and it answers nothing. On Linux, resolves once every thread has stopped. */
  async freeze(): Promise<void> {
    const { pid } = this;
    process.kill(pid, 'SIGSTOP');
    await until(`${this.name} to stand still`, () => hasStopped(pid), { timeoutMs: 30_000, everyMs: 5 });
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** SIGKILL, as in a crash. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and SIGKILL after 10 s. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Kills it if it still runs, starts it again on the same ports and data, and waits until it serves. */
  async restart(): Promise<void> {
    await this.kill();
    this.start();
    await this.#command.ready?.();
  }

  /** The last lines of its log. */
  logTail(): string {
    try {
      return readFileSync(this.#command.logFile, 'utf8').split('\n').slice(-30).join('\n');
    } catch {
      return '';
    }
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#ended = true;
    if (child === undefined || !this.running) return;
    child.ref();
    const exit = once(child, 'exit');
    child.kill(signal);
    // A frozen process ignores SIGTERM.
    if (signal === 'SIGTERM') child.kill('SIGCONT');
    const force = setTimeout(() => child.kill('SIGKILL'), gracefulMs);
    await exit;
    clearTimeout(force);
  }
}

/** Whether every thread of a process is stopped by a signal, which takes a while on a busy machine. True on systems without `/proc`. */
function hasStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(threads)) return true;
  // The state follows the name, which is in parentheses and may contain any character.
  return readdirSync(threads).every((thread) => /\) T [^)]*$/.test(readFileSync(`${threads}/${thread}/stat`, 'utf8')));
}
