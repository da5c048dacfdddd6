import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from './wait.ts';

/** A program in a terminal, which `script` of util-linux provides. */
export class Terminal {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #text = '';

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    const command = [program, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    this.#child = spawn('script', ['--quiet', '--flush', '--return', '--command', command, '/dev/null'], { env });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#text += text;
      });
    this.#closed = once(this.#child, 'close');
  }

  /** Everything that it has shown. */
  get text(): string {
    return this.#text;
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Resolves to everything shown once that matches. */
  async shows(pattern: RegExp, timeoutMs = 30_000): Promise<string> {
    const isShown = async (): Promise<boolean> => pattern.test(this.#text);
    await until(`the terminal to show ${pattern}; it shows:\n${this.#text}`, isShown, { timeoutMs, everyMs: 2 }).catch(
      (error: Error) => {
        throw new Error(`${error.message}\n${this.#text}`);
      },
    );
    return this.#text;
  }

  /** Resolves to the exit code, once `text` is complete. */
  async exit(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
