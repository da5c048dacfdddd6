import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from '../../sandbox/plane-client.ts';

/** The built client. */
export const program = fileURLToPath(new URL('../../dist/client.cjs', import.meta.url));

export interface ClientResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningClient {
  /** Resolves when the program ends. */
  readonly ended: Promise<ClientResult>;
  /** What it has printed so far. */
  readonly soFar: () => { readonly stdout: string; readonly stderr: string };
  kill(signal: NodeJS.Signals): void;
}

/** Who runs the client. */
export interface Caller {
  readonly kubeconfig: string;
  /** The home directory. Default: that of this process. */
  readonly home?: string;
  /** Standard input. Default: empty. */
  readonly input?: string;
}

/**
 * Runs the built client as people of a plane, in one namespace, or without one in that of the command line. Standard input, output, and
 * error are no terminal.
 */
export class Client {
  /** An administrator of the plane. */
  readonly admin: { readonly kubeconfig: string };
  readonly #plane: PlaneClient;
  readonly #namespace: string | undefined;

  constructor({ plane, namespace }: { readonly plane: PlaneClient; readonly namespace?: string }) {
    this.admin = { kubeconfig: plane.adminKubeconfig };
    this.#plane = plane;
    this.#namespace = namespace;
  }

  start({ kubeconfig, home, input }: Caller, ...args: string[]): RunningClient {
    const { PATH = '' } = process.env;
    const isGiven = args.includes('-A') || args.includes('-n') || this.#namespace === undefined;
    const namespace = isGiven ? [] : ['-n', this.#namespace];
    // Before the arguments, because a command may follow --.
    const child = spawn(process.execPath, [program, ...namespace, ...args], {
      env: {
        ...process.env,
        KUBECONFIG: kubeconfig,
        ...(home === undefined ? {} : { HOME: home }),
        PATH: `${dirname(this.#plane.binaries.kubectl)}:${PATH}`,
      },
      stdio: 'pipe',
    });
    // A program that ends before it reads its input closes the pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    const ended = new Promise<ClientResult>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, stdout, stderr }));
    });
    return { ended, soFar: () => ({ stdout, stderr }), kill: (signal) => void child.kill(signal) };
  }

  run(person: Caller, ...args: string[]): Promise<ClientResult> {
    return this.start(person, ...args).ended;
  }

  /** Standard output of a run that succeeds. */
  async ok(person: Caller, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(person, ...args);
    if (code === 0) return stdout;
    throw new Error(`drawbridge ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  }
}
