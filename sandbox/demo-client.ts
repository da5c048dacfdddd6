import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from './plane-client.ts';
import { until } from './wait.ts';

const program = fileURLToPath(new URL('../dist/client.cjs', import.meta.url));

/** The built client, run by a person of a demo. */
export class DemoClient {
  /** Resolves with what it printed since `says`, when it ends; with any exit code. */
  readonly ended: Promise<string>;
  #output = '';
  #shown = 0;

  constructor(plane: PlaneClient, kubeconfig: string, args: readonly string[]) {
    const path = `${dirname(plane.binaries.kubectl)}:${process.env['PATH'] ?? ''}`;
    const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: path };
    const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => resolve(this.#next()));
    });
  }

  /** Resolves with its output so far, once that contains the text. */
  async says(text: string): Promise<string> {
    await until(`the client to say ${text}`, () => this.#output.includes(text), { timeoutMs: 30_000, everyMs: 20 });
    return this.#next();
  }

  #next(): string {
    const text = this.#output.slice(this.#shown);
    this.#shown = this.#output.length;
    return text;
  }
}
