import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { type RunResult, run } from '../build/run.ts';

export const chart = fileURLToPath(new URL('../../charts/drawbridge', import.meta.url));

/** A parsed manifest; its fields are what the chart says, so whoever reads one names what it looks for. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into many kinds of objects; typing each would say nothing more.
  readonly [field: string]: any;
}

export interface HelmOptions {
  /** Path of the helm program. */
  readonly program: string;
  /** Where helm may keep files. */
  readonly home: string;
  /** Not needed for `lint` and `template`. */
  readonly kubeconfig?: string;
}

/** The helm program, as a person would use it with our chart. */
export class Helm {
  readonly #options: HelmOptions;

  constructor(options: HelmOptions) {
    this.#options = options;
  }

  /** Rejects when helm fails, with what it said, unless `reject` is false. */
  async run(args: readonly string[], { reject = true, input = '' } = {}): Promise<RunResult> {
    const { program, home, kubeconfig } = this.#options;
    const result = await run(program, args, {
      env: { PATH: process.env['PATH'], HOME: home, ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }) },
      input,
    });
    if (reject && result.code !== 0)
      throw new Error(`helm ${args.join(' ')} ended with ${result.code}:\n${result.stderr}`);
    return result;
  }

  /** What the chart makes of `values`, as manifests. */
  async template(namespace: string, values: object = {}, ...args: string[]): Promise<Manifest[]> {
    const command = ['template', 'drawbridge', chart, '--namespace', namespace, '--values', '-', ...args];
    const { stdout } = await this.run(command, { input: JSON.stringify(values) });
    return manifestsIn(stdout);
  }

  /** What an installed release is made of; without hooks. */
  async manifest(namespace: string): Promise<Manifest[]> {
    const { stdout } = await this.run(['get', 'manifest', 'drawbridge', '--namespace', namespace]);
    return manifestsIn(stdout);
  }
}

const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
