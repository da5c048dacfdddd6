import type { RequestListener, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../kit/clock.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import { listen } from '../kit/listen.ts';
import type { Log } from '../observe/log.ts';
import type { ServingCertificate } from './certificate.ts';
import { HANDSHAKE_MS, limitConnections } from './connection-limits.ts';
import { FairQueue } from './fair-queue.ts';

interface ServerOptions {
  readonly app: RequestListener;
  readonly certificate: ServingCertificate;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  /** PEM. When there is one, only callers with a client certificate of it are served. */
  readonly clientAuthorities?: Buffer | undefined;
  /** Where handshakes wait for their turn. Default: a queue of their own. */
  readonly turns?: FairQueue;
  /** Told of each connection that there was no room for. */
  readonly onRefused?: () => void;
}

export interface AdmissionServer {
  readonly port: number;
  /** Answers whoever still asks, ends each connection with its next answer, and is done when nobody has asked for 0.5 s, after 5 s at the latest. */
  close(): Promise<void>;
}

/**
 * The API server keeps idle connections for 90 s, spare ones that carried no call yet included. The side that closes first loses the
 * calls that are already on the way.
 */
const KEEP_ALIVE_MS = 120_000;
const HEADERS_MS = 5_000;
const REQUEST_MS = 10_000;
const DRAIN_MS = 5_000;
/** Long enough for a request that is on its way to arrive. */
const QUIET_MS = 500;
const SWEEP_MS = 50;

/** Serves `app` over HTTPS. Rejects with `PortUnavailable` when the port cannot be had. */
export async function startAdmissionServer(options: ServerOptions): Promise<AdmissionServer> {
  const {
    certificate,
    clientAuthorities,
    clock,
    log,
    turns = new FairQueue({ clock }),
    onRefused = () => {},
  } = options;
  const connections = new Connections();
  const server = createServer(
    {
      ...tlsOptions(certificate.current, clientAuthorities),
      // The apiserver speaks HTTP/1.1 to webhooks, on purpose.
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: HANDSHAKE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      // How often the two timeouts above are looked at.
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      if (connections.answering(request.socket, response)) options.app(request, response);
      // The API server never sends a second call before it has the answer to the first; a flood of them would come in one piece.
      else request.socket.destroy();
    },
  );
  // For connections that carried no call yet; Node ends the others itself.
  server.timeout = KEEP_ALIVE_MS;
  limitConnections(server, { turns, refused: onRefused });
  server.on('connection', (socket) => connections.accepted(socket));
  server.on('secureConnection', (socket) => connections.opened(socket));
  server.on('clientError', refuseClient);
  await listen(server, options.host, options.port);
  server.on('error', (error) => log.error('webhook server', { error: error.message }));
  certificate.start((pair) => {
    server.setSecureContext(tlsOptions(pair, clientAuthorities));
    connections.retire();
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      certificate.close();
      connections.retireForGood();
      return drain(server, connections, clock);
    },
  };
}

/**
 * Ends connections with their next answer, by `Connection: close`. Closing an idle one instead would lose the request that may
 * already be on its way.
 */
class Connections {
  #generation = 0;
  /** Below TLS, so that those are included which never finish the handshake: Node's own list does not know them. */
  readonly #accepted = new Set<Duplex>();
  readonly #born = new WeakMap<Socket, number>();
  readonly #unanswered = new Map<Socket, ServerResponse>();
  #asked = 0;
  #forGood = false;

  accepted(socket: Duplex): void {
    this.#accepted.add(socket);
    socket.once('close', () => this.#accepted.delete(socket));
  }

  opened(socket: Socket): void {
    this.#born.set(socket, this.#generation);
  }

  /** False while an earlier call of the connection has no answer, or got its last one. */
  answering(socket: Socket, response: ServerResponse): boolean {
    const earlier = this.#unanswered.get(socket);
    // Who has read the answer may be faster than the word that all of it was written.
    if (earlier && (!earlier.writableEnded || earlier.getHeader('connection') === 'close')) return false;
    if (this.#forGood || this.#born.get(socket) !== this.#generation) response.setHeader('connection', 'close');
    this.#asked++;
    this.#unanswered.set(socket, response);
    response.once('close', () => {
      if (this.#unanswered.get(socket) === response) this.#unanswered.delete(socket);
    });
    return true;
  }

  /** From now on every connection that is open now ends with its next answer. */
  retire(): void {
    this.#generation++;
    for (const response of this.#unanswered.values()) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
  }

  /** Those that are yet to be opened as well. */
  retireForGood(): void {
    this.#forGood = true;
    this.retire();
  }

  /** An answer is in the making. */
  get busy(): boolean {
    return this.#unanswered.size > 0;
  }

  get open(): boolean {
    return this.#accepted.size > 0;
  }

  /** Requests so far. */
  get asked(): number {
    return this.#asked;
  }

  destroy(): void {
    for (const socket of this.#accepted) socket.destroy();
  }
}

function tlsOptions({ cert, key }: KeyPair, ca: Buffer | undefined) {
  const mutual = ca ? ({ ca, requestCert: true, rejectUnauthorized: true } as const) : {};
  return { cert, key, minVersion: 'TLSv1.2', ...mutual } as const;
}

/**
 * Goes on answering, each connection once more, until nobody has asked for a while: closing an idle connection, or the listener with
 * it, would lose the request that is on its way. Who still finds us new is answered as well.
 */
async function drain(server: Server, connections: Connections, clock: Clock): Promise<void> {
  let quietMs = connections.open ? 0 : QUIET_MS;
  let asked = connections.asked;
  for (let waitedMs = 0; waitedMs < DRAIN_MS && quietMs < QUIET_MS; waitedMs += SWEEP_MS) {
    await sleep(clock, SWEEP_MS);
    quietMs = connections.busy || connections.asked !== asked ? 0 : quietMs + SWEEP_MS;
    asked = connections.asked;
  }
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  connections.destroy();
  await closed;
}

/** Not HTTP or too slow: one line, and the socket is closed. Everything else has no HTTP on it yet, or is gone. */
function refuseClient(error: NodeJS.ErrnoException, socket: Socket): void {
  const code = error.code ?? '';
  // Node's limits count from the handshake. To close a spare connection would lose the call that is just being sent on it.
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
  if (!socket.writable || !(code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT')) {
    socket.destroy();
    return;
  }
  const status = statuses[code] ?? '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

const statuses: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};
