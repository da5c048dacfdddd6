import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { type RunResult, run } from '../build/run.ts';

export const chart = fileURLToPath(new URL('../../charts/drawbridge', import.meta.url));

/** A parsed manifest of the chart; the reader names the fields that it expects. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into many kinds of objects; a type for each would add nothing.
  readonly [field: string]: any;
}

export interface HelmOptions {
  /** Path of the helm program. */
  readonly program: string;
  /** A folder for helm's files. */
  readonly home: string;
  /** Not needed for `lint` and `template`. */
  readonly kubeconfig?: string;
}

/** The helm program, used as a user would use it with the chart. */
export class Helm {
  readonly #options: HelmOptions;

  constructor(options: HelmOptions) {
    this.#options = options;
  }

  /** Rejects with helm's output if helm fails, unless `reject` is false. */
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

  /** The manifests that the chart renders for `values`. */
  async template(namespace: string, values: object = {}, ...args: string[]): Promise<Manifest[]> {
    const command = ['template', 'drawbridge', chart, '--namespace', namespace, '--values', '-', ...args];
    const { stdout } = await this.run(command, { input: JSON.stringify(values) });
    return manifestsIn(stdout);
  }

  /** The manifests of an installed release, without hooks. */
  async manifest(namespace: string): Promise<Manifest[]> {
    const { stdout } = await this.run(['get', 'manifest', 'drawbridge', '--namespace', namespace]);
    return manifestsIn(stdout);
  }
}

const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
