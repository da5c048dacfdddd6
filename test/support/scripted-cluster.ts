import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RawIo } from '../../src/client/command.ts';
import { runClient } from '../../src/client/run.ts';
import { type Answer, ScriptedApiserver, type ScriptedRequest } from './scripted-apiserver.ts';

export interface ClientRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Answers a call itself; false leaves it to the objects. */
export type Fault = (request: ScriptedRequest, answer: Answer) => boolean;

/** Answers the calls of a path, and of a method if one is given. A body that is a text is the reason of a Status. */
export const answering =
  (end: string | RegExp, code: number, body: object | string = '', only?: string): Fault =>
  ({ method, path }, answer) => {
    if (only !== undefined && method !== only) return false;
    if (!(typeof end === 'string' ? path.endsWith(end) : end.test(path))) return false;
    if (typeof body === 'string') answer.status(code, body);
    else answer.json(code, body);
    return true;
  };

/** The client in this process, and an API server on loopback with fixed objects: for texts and faults that a real one does not give. */
export class ScriptedCluster {
  readonly server: ScriptedApiserver;
  readonly kubeconfig: string;
  /** Programs that the client ran, with their arguments. */
  readonly ran: (readonly string[])[] = [];
  /** The exit code of those programs. */
  exitCode = 0;
  /** Why those programs cannot start. */
  startError: Error | undefined;
  /** How the user calls the client. */
  program = 'drawbridge';
  readonly #directory: string;

  private constructor(server: ScriptedApiserver) {
    this.server = server;
    this.#directory = mkdtempSync(join(tmpdir(), 'drawbridge-client-'));
    this.kubeconfig = join(this.#directory, 'kubeconfig.yaml');
    const cluster = { server: server.url, 'insecure-skip-tls-verify': true };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'one',
      contexts: [
        { name: 'one', context: { cluster: 'one', user: 'one', namespace: 'payments' } },
        { name: 'other', context: { cluster: 'one', user: 'one' } },
      ],
      clusters: [{ name: 'one', cluster }],
      users: [{ name: 'one', user: { token: 'secret' } }],
    };
    // JSON is YAML, too.
    writeFileSync(this.kubeconfig, JSON.stringify(config));
  }

  /** `objects` by the plural of their kind. The caller is alice. */
  static async open(objects: Readonly<Record<string, readonly object[]>>, fault: Fault = () => false) {
    return new ScriptedCluster(
      await ScriptedApiserver.start((request, answer) => {
        if (!fault(request, answer)) answerFrom(objects, request, answer);
      }),
    );
  }

  /** `printed` gets what the client prints on standard output, as it prints it. */
  async run(
    argv: readonly string[],
    signal = new AbortController().signal,
    printed: (text: string) => void = () => undefined,
  ): Promise<ClientRun> {
    let [stdout, stderr] = ['', ''];
    const io: RawIo = {
      print: (text) => {
        stdout += text;
        printed(text);
      },
      show: async (text) => {
        stdout += text;
        printed(text);
      },
      printError: (text) => {
        stderr += text;
      },
      stdin: (async function* () {})(),
      terminal: { input: false, output: false, error: false },
      columns: undefined,
      errorColumns: undefined,
      kubeconfigPaths: this.kubeconfig,
      program: this.program,
      run: async (program, args) => {
        this.ran.push([program, ...args]);
        if (this.startError) throw this.startError;
        return this.exitCode;
      },
    };
    const code = await runClient(argv, io, signal);
    return { code, stdout, stderr };
  }

  /** Calls that are neither reads nor reviews. */
  get writes(): ScriptedRequest[] {
    return this.server.requests.filter(({ method, path }) => method !== 'GET' && !path.includes('selfsubject'));
  }

  async close(): Promise<void> {
    rmSync(this.#directory, { recursive: true });
    await this.server.close();
  }
}

function answerFrom(objects: Readonly<Record<string, readonly object[]>>, request: ScriptedRequest, answer: Answer) {
  const { method, path, query, body, watch } = request;
  if (path.endsWith('selfsubjectreviews')) return answer.json(201, { status: { userInfo: { username: 'alice' } } });
  if (path.endsWith('selfsubjectaccessreviews')) return answer.json(201, { status: { allowed: true } });
  if (method === 'POST') return answer.json(201, named(body as { metadata?: object }));
  if (watch) return answer.open();
  const [, plural = '', name] =
    /^\/apis?\/(?:[^/]+\.[^/]+\/)?v[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  const list = objects[plural] ?? [];
  const only = query.get('fieldSelector')?.replace('metadata.name=', '');
  if (name === undefined)
    return answer.list(
      '7',
      list.filter((one) => only === undefined || nameOf(one) === only),
    );
  const found = list.find((one) => nameOf(one) === decodeURIComponent(name));
  if (!found) return answer.status(404, 'NotFound');
  answer.json(200, method === 'PATCH' ? { ...found, ...(body as object), ...pick(found) } : found);
}

const nameOf = (object: object): string => (object as { metadata: { name: string } }).metadata.name;
const pick = (object: object) => ({ metadata: (object as { metadata: object }).metadata });
const named = (object: { metadata?: object }) => ({
  ...object,
  metadata: { name: 'made', uid: 'u9', ...object.metadata },
});
