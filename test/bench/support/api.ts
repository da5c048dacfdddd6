import { Client, Pool } from 'undici';
import { type Identity, issue } from '../../../sandbox/pki.ts';
import type { PlaneClient } from '../../../sandbox/plane-client.ts';

export const connections = 32;

/** An object of the API, with the fields that benchmarks read. */
export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp: string;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { readonly uid: string }[];
  };
  readonly status?: {
    readonly ready?: boolean;
    readonly approval?: { readonly state: string };
    readonly result?: string;
    readonly grant?: { readonly expiresAt: string };
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

export interface Watched {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: ApiObject;
  /** Epoch ms with fractions, when the event arrived here. */
  readonly atMs: number;
}

/** The benchmarks' own client: one user over a pool of 32 kept-alive connections. It shares no code with the server. */
export class Api {
  readonly #server: string;
  readonly #identity: Identity;
  readonly #authority: string;
  readonly #pool: Pool;
  readonly #watches = new Set<Client>();

  constructor(plane: PlaneClient, user: string, groups: readonly string[]) {
    this.#server = plane.server;
    this.#authority = plane.authority.certificate;
    this.#identity = issue(plane.authority, { commonName: user, groups });
    this.#pool = new Pool(this.#server, { connections, allowH2: false, connect: this.#tls });
  }

  /** Opens every connection, so that no figure includes handshakes. */
  async warm(): Promise<void> {
    await Promise.all(Array.from({ length: connections }, () => this.call('GET', '/version')));
  }

  /** Resolves to the parsed answer; rejects unless the status is 2xx or, with `gone`, 404. A PATCH is a JSON merge patch. */
  async call(
    method: 'GET' | 'POST' | 'DELETE' | 'PATCH',
    path: string,
    body?: unknown,
    gone = false,
  ): Promise<unknown> {
    const answer = await this.#pool.request({
      path,
      method,
      headers: {
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
        accept: 'application/json',
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode < 300 || (gone && answer.statusCode === 404)) return JSON.parse(text);
    throw new Error(`${method} ${path}: ${answer.statusCode} ${text.slice(0, 500)}`);
  }

  /**
   * Calls `onEvent` for every change of a collection until the returned function is called. Resolves once the watch is open. If the API
   * server ends a slow watch, the client resumes it from the last event.
   */
  async watch(collection: string, onEvent: (event: Watched) => void): Promise<() => void> {
    const { metadata } = (await this.call('GET', `${collection}?limit=1`)) as ApiObject;
    let from = metadata.resourceVersion;
    const client = new Client(this.#server, { allowH2: false, connect: this.#tls, bodyTimeout: 0 });
    this.#watches.add(client);
    const open = async (): Promise<void> => {
      const path = `${collection}?watch=1&resourceVersion=${from}`;
      const { body, statusCode } = await client.request({ method: 'GET', path });
      if (statusCode !== 200) throw new Error(`the API server rejected the watch of ${collection}: ${statusCode}`);
      body.setEncoding('utf8');
      let rest = '';
      body.on('data', (chunk: string) => {
        const atMs = now();
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const event = JSON.parse(line) as Omit<Watched, 'atMs'>;
          from = event.object.metadata.resourceVersion;
          onEvent({ ...event, atMs });
        }
      });
      body.on('error', () => undefined);
      body.on('end', () => void open());
    };
    await open();
    return () => void client.destroy();
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.destroy(), ...[...this.#watches].map((client) => client.destroy())]);
  }

  get #tls() {
    return { ca: this.#authority, cert: this.#identity.certificate, key: this.#identity.key };
  }
}

/** Epoch ms of the wall clock with the resolution of the monotonic one. */
export const now = (): number => performance.timeOrigin + performance.now();

/** Runs `work` for 0 to `count` - 1, `width` at a time; default as many as there are connections. Resolves to the milliseconds it took. */
export async function inParallel(
  count: number,
  work: (index: number) => Promise<unknown>,
  width = connections,
): Promise<number> {
  const start = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
  return performance.now() - start;
}

/** Resolves to the instant at which a watch showed the last of `count` names. */
export function gathering(count: number, what: string, limitMs: number) {
  const names = new Set<string>();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const timer = setTimeout(() => reject(new Error(`${names.size} of ${count} ${what} in time`)), limitMs).unref();
  promise.catch(() => undefined);
  return {
    seen(name: string, atMs: number): void {
      names.add(name);
      if (names.size < count) return;
      clearTimeout(timer);
      resolve(atMs);
    },
    all: promise,
  };
}
