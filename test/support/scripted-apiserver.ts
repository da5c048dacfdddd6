import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface ScriptedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** The parsed JSON; undefined without a body. */
  readonly body: unknown;
  /** True for watches. */
  readonly watch: boolean;
}

/** The answers that a script can give to one request. */
export interface Answer {
  json(code: number, body: unknown, headers?: Record<string, string>): void;
  /** Any text as the body. */
  raw(code: number, body: string): void;
  status(code: number, reason?: string, headers?: Record<string, string>): void;
  /** Answers a list of `items` at `resourceVersion`. */
  list(resourceVersion: string, items: readonly unknown[], token?: string): void;
  /** Accepts a watch: sends the head with status 200. */
  open(): void;
  event(type: string, object: unknown): void;
  bookmark(resourceVersion: string): void;
  /** Writes raw bytes into an open watch. */
  write(bytes: string | Uint8Array): void;
  /** Ends the answer regularly, after `bytes`. */
  end(bytes?: string): void;
  /** Resets the connection. */
  reset(): void;
  readonly closed: boolean;
}

export type Script = (request: ScriptedRequest, answer: Answer) => void;

/** A loopback HTTP server with scripted answers, for faults that a real API server does not produce on demand. */
export class ScriptedApiserver {
  readonly requests: ScriptedRequest[] = [];
  readonly answers: Answer[] = [];
  /** Connections accepted so far. */
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #script: Script;

  private constructor(script: Script) {
    this.#script = script;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('connection', (socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
  }

  static async start(script: Script): Promise<ScriptedApiserver> {
    const server = new ScriptedApiserver(script);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  get lists(): ScriptedRequest[] {
    return this.requests.filter(({ method, watch }) => method === 'GET' && !watch);
  }

  get watches(): ScriptedRequest[] {
    return this.requests.filter(({ watch }) => watch);
  }

  /** Answers further requests by `script`. */
  follow(script: Script): void {
    this.#script = script;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://scripted');
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks).toString();
    const entry: ScriptedRequest = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: body === '' ? undefined : JSON.parse(body),
      watch: url.searchParams.get('watch') === 'true',
    };
    const answer = answerOf(response);
    this.requests.push(entry);
    this.answers.push(answer);
    this.#script(entry, answer);
  }
}

function answerOf(response: ServerResponse): Answer {
  const json: Answer['json'] = (code, body, headers = {}) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
  const write = (bytes: string | Uint8Array): void => void response.write(bytes);
  const event: Answer['event'] = (type, object) => write(`${JSON.stringify({ type, object })}\n`);
  return {
    json,
    raw: (code, body) => void response.writeHead(code).end(body),
    status: (code, reason = '', headers) =>
      json(
        code,
        { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: `scripted ${code}` },
        headers,
      ),
    list: (resourceVersion, items, token) =>
      json(200, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion, continue: token }, items }),
    open: () => {
      response.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
      response.flushHeaders();
    },
    event,
    bookmark: (resourceVersion) => event('BOOKMARK', { kind: 'Pod', apiVersion: 'v1', metadata: { resourceVersion } }),
    write,
    end: (bytes) => void response.end(bytes),
    reset: () => void response.socket?.resetAndDestroy(),
    get closed() {
      return response.destroyed || response.writableEnded || (response.socket?.destroyed ?? true);
    },
  };
}

/** A Pod as in a list or a watch. */
export function pod(name: string, resourceVersion: string, uid = `uid-${name}`, fields: Record<string, unknown> = {}) {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'default', name, uid, resourceVersion }, ...fields };
}
