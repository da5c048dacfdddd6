import type {
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http';
import { createServer, request, type Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { type Authority, type Identity, issue } from './pki.ts';
import { portOf } from './ports.ts';

export interface ScriptedRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly watch: boolean;
}

/**
 * What happens to a call. `pass` forwards it. `cut` closes the connection before the call reaches the API server. `cut-answer` closes
 * it after the API server has executed the call, so that the caller gets no answer. An answer replaces the API server's.
 */
export type Verdict = 'pass' | 'cut' | 'cut-answer' | Answer;

export interface Answer {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown;
}

export interface HttpScript {
  readonly onRequest?: (request: ScriptedRequest) => Verdict | Promise<Verdict>;
  /** The lines to send for one line of a watch: no line hides it, two duplicate it, a late promise delays it. */
  readonly onWatchLine?: (line: string, request: ScriptedRequest) => readonly string[] | Promise<readonly string[]>;
}

export interface ScriptedServerInputs {
  /** Port of the apiserver. */
  readonly apiserver: number;
  readonly authority: Authority;
  /** Authenticates the caller to the API server, because a client certificate cannot be forwarded. */
  readonly frontProxy: Identity;
  readonly script: HttpScript;
}

/** Proxies the API server over HTTP/1.1 and handles calls by the script. Supports no exec, attach, or upgrade. */
export class ScriptedServer {
  readonly port: number;
  readonly #server: Server;
  readonly #inputs: ScriptedServerInputs;

  private constructor(server: Server, inputs: ScriptedServerInputs) {
    this.port = portOf(server);
    this.#server = server;
    this.#inputs = inputs;
    server.on('request', (incoming, outgoing) => {
      this.#handle(incoming, outgoing).catch(() => incoming.socket.destroy());
    });
  }

  static open(inputs: ScriptedServerInputs): Promise<ScriptedServer> {
    const { certificate, key } = issue(inputs.authority, {
      commonName: 'scripted-apiserver',
      serves: ['127.0.0.1', '::1', 'localhost'],
    });
    const server = createServer({
      cert: certificate,
      key,
      ca: inputs.authority.certificate,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    });
    // Longer than clients keep an idle connection, so that only the script closes one.
    server.keepAliveTimeout = 300_000;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(new ScriptedServer(server, inputs)));
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = describe(incoming);
    const verdict = (await this.#inputs.script.onRequest?.(call)) ?? 'pass';
    if (verdict === 'cut') incoming.socket.destroy();
    else if (typeof verdict === 'object') answer(outgoing, verdict);
    else this.#forward(incoming, outgoing, call, verdict);
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, call: ScriptedRequest, verdict: Verdict): void {
    const upstream = this.#send(incoming, call);
    outgoing.on('close', () => upstream.destroy());
    upstream.on('error', () => incoming.socket.destroy());
    upstream.on('response', (response) => {
      if (verdict === 'cut-answer') {
        response.resume().on('end', () => incoming.socket.destroy());
        return;
      }
      response.on('error', () => incoming.socket.destroy());
      outgoing.writeHead(response.statusCode ?? 502, endToEnd(response.headers));
      outgoing.flushHeaders();
      const { onWatchLine } = this.#inputs.script;
      if (!call.watch || onWatchLine === undefined) response.pipe(outgoing);
      else relayLines(response, outgoing, (line) => onWatchLine(line, call)).catch(() => incoming.socket.destroy());
    });
    incoming.pipe(upstream);
  }

  #send(incoming: IncomingMessage, call: ScriptedRequest): ClientRequest {
    const caller = callerHeaders(incoming.socket as TLSSocket);
    const { frontProxy } = this.#inputs;
    return request({
      host: '127.0.0.1',
      port: this.#inputs.apiserver,
      agent: false,
      method: call.method,
      path: call.path,
      headers: { ...endToEnd(call.headers), ...caller },
      ca: this.#inputs.authority.certificate,
      ...(caller === undefined ? {} : { cert: frontProxy.certificate, key: frontProxy.key }),
    });
  }
}

function describe({ method = 'GET', url = '/', headers }: IncomingMessage): ScriptedRequest {
  const watch = new URL(url, 'https://apiserver').searchParams.get('watch');
  return { method, path: url, headers, watch: watch === 'true' || watch === '1' };
}

function answer(outgoing: ServerResponse, { status, headers = {}, body }: Answer): void {
  const json = typeof body !== 'string' && body !== undefined;
  outgoing.writeHead(status, { ...(json ? { 'content-type': 'application/json' } : {}), ...headers });
  outgoing.end(json ? JSON.stringify(body) : body);
}

// Undefined for a caller without a certificate; its bearer token authenticates it.
function callerHeaders(socket: TLSSocket): OutgoingHttpHeaders | undefined {
  // A resumed session counts as authorized even if its client never presented a certificate.
  const subject = socket.authorized ? socket.getPeerCertificate().subject : undefined;
  if (subject === undefined) return undefined;
  const { CN, O } = subject as { CN: string; O?: string | string[] };
  return { 'x-remote-user': CN, 'x-remote-group': O ?? [] };
}

const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'x-remote-user', 'x-remote-group']);

function endToEnd(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));
}

async function relayLines(
  from: IncomingMessage,
  to: ServerResponse,
  rewrite: (line: string) => readonly string[] | Promise<readonly string[]>,
): Promise<void> {
  let rest = '';
  for await (const chunk of from.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      for (const sent of await rewrite(line)) to.write(`${sent}\n`);
    }
  }
  to.end(rest);
}
