import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createAuthority, issue } from '../../sandbox/pki.ts';
import { freePorts } from '../../sandbox/ports.ts';
import { until } from '../../sandbox/wait.ts';

/** Debian's docker-registry over TLS. It ends when this process ends. */
export class Registry {
  readonly host: string;
  readonly #files: string;
  readonly #child: ChildProcess;

  private constructor(host: string, files: string, child: ChildProcess) {
    this.host = host;
    this.#files = files;
    this.#child = child;
  }

  /** Starts it empty. The environment of its clients has `SSL_CERT_FILE`, the file `ca.crt` in the folder. */
  static async start(folder: string): Promise<Registry> {
    const [port = 0] = await freePorts(1);
    const at = (name: string): string => join(folder, name);
    const authority = createAuthority('registry');
    const { certificate, key } = issue(authority, { commonName: 'localhost', serves: ['localhost'] });
    mkdirSync(at('files'), { recursive: true });
    writeFileSync(at('ca.crt'), authority.certificate);
    writeFileSync(at('tls.crt'), certificate);
    writeFileSync(at('tls.key'), key, { mode: 0o600 });
    const configuration = {
      version: '0.1',
      log: { level: 'warn' },
      storage: { filesystem: { rootdirectory: at('files') }, maintenance: { uploadpurging: { enabled: false } } },
      http: { addr: `localhost:${port}`, secret: 'test', tls: { certificate: at('tls.crt'), key: at('tls.key') } },
    };
    writeFileSync(at('config.yml'), stringify(configuration));
    const log = openSync(at('registry.log'), 'a');
    const child = spawn('docker-registry', ['serve', at('config.yml')], { stdio: ['ignore', log, log] });
    process.once('exit', () => child.kill('SIGKILL'));
    const accepts = async (): Promise<boolean> => {
      if (child.exitCode !== null) throw new Error(`docker-registry ended; ${at('registry.log')} says why`);
      return fetch(`https://localhost:${port}/v2/`).then(
        () => true,
        // fetch does not know the authority, which the registry shows only when it listens.
        (error: Error) => /certificate/.test(String(error.cause)),
      );
    };
    await until('docker-registry to listen', accepts, { timeoutMs: 20_000, everyMs: 50 });
    return new Registry(`localhost:${port}`, at('files'), child);
  }

  /** The file of a blob. */
  blob(digest: string): string {
    const hash = digest.replace('sha256:', '');
    return join(this.#files, 'docker/registry/v2/blobs/sha256', hash.slice(0, 2), hash, 'data');
  }

  /** The time of each file and folder, to see whether anything was written. */
  times(): Record<string, number> {
    const names = readdirSync(this.#files, { recursive: true, encoding: 'utf8' }).sort();
    return Object.fromEntries(names.map((name) => [name, statSync(join(this.#files, name)).mtimeMs]));
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill();
    await exited;
  }
}
