import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import type { Person } from './person.ts';

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

/** Runs the built client as people of a plane, in one namespace. Standard input, output, and error are no terminal. */
export class Client {
  /** An administrator of the plane. */
  readonly admin: { readonly kubeconfig: string };
  readonly #plane: PlaneClient;
  readonly #namespace: string;

  constructor({ plane, namespace }: { readonly plane: PlaneClient; readonly namespace: string }) {
    this.admin = { kubeconfig: plane.adminKubeconfig };
    this.#plane = plane;
    this.#namespace = namespace;
  }

  start(person: Pick<Person, 'kubeconfig'>, ...args: string[]): RunningClient {
    const { PATH = '' } = process.env;
    const namespace = args.includes('-A') || args.includes('-n') ? [] : ['-n', this.#namespace];
    // Before the arguments, because a command may follow --.
    const child = spawn(process.execPath, [program, ...namespace, ...args], {
      env: {
        ...process.env,
        KUBECONFIG: person.kubeconfig,
        PATH: `${dirname(this.#plane.binaries.kubectl)}:${PATH}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
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

  run(person: Pick<Person, 'kubeconfig'>, ...args: string[]): Promise<ClientResult> {
    return this.start(person, ...args).ended;
  }

  /** Standard output of a run that succeeds. */
  async ok(person: Pick<Person, 'kubeconfig'>, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(person, ...args);
    if (code === 0) return stdout;
    throw new Error(`drawbridge ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  }
}
