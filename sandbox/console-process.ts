import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from './plane-client.ts';
import { until } from './wait.ts';

const program = fileURLToPath(new URL('../dist/client.cjs', import.meta.url));

/** Resolves to a folder with kubectl and its plugin drawbridge, for the commands that people copy from the page. */
export async function kubectlWithPlugin({ binaries, directory }: Pick<PlaneClient, 'binaries' | 'directory'>) {
  const folder = join(directory, 'bin');
  await mkdir(folder, { recursive: true });
  const script = (command: string): string => `#!/bin/sh\nexec ${command} "$@"\n`;
  await writeFile(join(folder, 'kubectl'), script(`'${binaries.kubectl}'`), { mode: 0o755 });
  await writeFile(join(folder, 'kubectl-drawbridge'), script(`'${process.execPath}' '${program}'`), { mode: 0o755 });
  return folder;
}

/** `drawbridge console` of one person, without a browser. It ends when this process ends. */
export class ConsoleProcess {
  /** For the browser, with the token. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #output: () => string;

  private constructor(url: string, child: ChildProcess, output: () => string) {
    this.url = url;
    this.#child = child;
    this.#output = output;
  }

  /** Resolves once it serves. `flags`: also of the connection. */
  static async start(
    plane: Pick<PlaneClient, 'binaries' | 'directory'>,
    kubeconfig: string,
    ...flags: readonly string[]
  ): Promise<ConsoleProcess> {
    const path = `${dirname(plane.binaries.kubectl)}:${process.env['PATH'] ?? ''}`;
    const child = spawn(process.execPath, [program, 'console', '--no-open', '--port', '0', ...flags], {
      env: { PATH: path, HOME: plane.directory, KUBECONFIG: kubeconfig, TMPDIR: plane.directory },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const found = (): string | undefined => {
      if (child.exitCode !== null) throw new Error(`the console ended with exit code ${child.exitCode}:\n${output}`);
      return /http:\/\/127\.0\.0\.1:\d+\/\S*#[\w-]{43}(?=\s)/.exec(output)?.[0];
    };
    const url = await until('the URL of the console', found, { timeoutMs: 30_000, everyMs: 20 });
    return new ConsoleProcess(url, child, () => output);
  }

  /** `http://127.0.0.1:PORT`. */
  get origin(): string {
    return new URL(this.url).origin;
  }

  get token(): string {
    return new URL(this.url).hash.slice(1);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What it has printed. */
  get output(): string {
    return this.#output();
  }

  /** As Ctrl-C does. Resolves to the exit code. */
  async stop(): Promise<number | null> {
    if (!this.running) return this.#child.exitCode;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGINT');
    await exited;
    return this.#child.exitCode;
  }
}
