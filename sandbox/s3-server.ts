import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ensureGoPrograms } from './build/binaries.ts';
import { createAuthority, issue } from './pki.ts';
import { freePorts } from './ports.ts';
import { until } from './wait.ts';

/** A server that speaks the S3 protocol over TLS and verifies signatures. Its buckets are folders. It ends when this process ends. */
export class S3Server {
  readonly url: string;
  /** The file with the authority of its certificate. */
  readonly caFile: string;
  readonly accessKey = 'drawbridge';
  readonly secretKey = randomUUID();
  readonly #directory: string;
  readonly #port: number;
  readonly #program: string;
  #child: ChildProcess | undefined;

  private constructor(directory: string, port: number, program: string) {
    this.#directory = directory;
    this.#port = port;
    this.#program = program;
    this.url = `https://localhost:${port}`;
    this.caFile = join(directory, 'ca.crt');
  }

  /** Starts it with an empty `bucket`. `directory` must be absolute and empty. */
  static async start(directory: string, bucket: string): Promise<S3Server> {
    const [port = 0] = await freePorts(1);
    const server = new S3Server(directory, port, (await ensureGoPrograms(['versitygw'])).versitygw);
    const authority = createAuthority('s3');
    const { certificate, key } = issue(authority, { commonName: 'localhost', serves: ['localhost'] });
    await mkdir(server.bucket(bucket), { recursive: true });
    await mkdir(join(directory, 'metadata'));
    await writeFile(server.caFile, authority.certificate);
    await writeFile(join(directory, 'tls.crt'), certificate);
    await writeFile(join(directory, 'tls.key'), key, { mode: 0o600 });
    await server.resume();
    return server;
  }

  /** The folder of the bucket, with a file for each object. */
  bucket(name: string): string {
    return join(this.#directory, 'buckets', name);
  }

  /** Copies an object of a folder of the bucket, as another client could. */
  async copy(bucket: string, folder: string, from: string, to: string): Promise<void> {
    for (const root of ['metadata', 'buckets']) {
      const at = (name: string): string => join(this.#directory, root, bucket, folder, name);
      await cp(at(from), at(to), { recursive: true });
    }
  }

  /** The environment of a program that may use its buckets. */
  get env(): Record<string, string> {
    return {
      AWS_ACCESS_KEY_ID: this.accessKey,
      AWS_SECRET_ACCESS_KEY: this.secretKey,
      NODE_EXTRA_CA_CERTS: this.caFile,
    };
  }

  /** Starts it again after `stop`. Resolves once it accepts connections. */
  async resume(): Promise<void> {
    const at = (name: string): string => join(this.#directory, name);
    const log = openSync(at('s3.log'), 'a');
    const child = spawn(
      this.#program,
      [
        ...[`--port=localhost:${this.#port}`, `--cert=${at('tls.crt')}`, `--key=${at('tls.key')}`, '--keep-alive'],
        ...['posix', `--sidecar=${at('metadata')}`, at('buckets')],
      ],
      {
        stdio: ['ignore', log, log],
        env: { ROOT_ACCESS_KEY: this.accessKey, ROOT_SECRET_KEY: this.secretKey },
      },
    );
    const endWithThisProcess = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithThisProcess);
    child.once('exit', () => process.off('exit', endWithThisProcess));
    this.#child = child;
    await until('the S3 server to listen', () => accepts(this.#port), { timeoutMs: 30_000 });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, 'localhost');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
