import type { RequestListener, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Cancel, type Clock, sleep } from '../kit/clock.ts';
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
  /** The port to listen on; 0 for any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  /** CA certificates, PEM. If set, the server accepts only callers with a client certificate from one of them. */
  readonly clientAuthorities?: Buffer | undefined;
  /** Queue of the handshakes. Default: a separate queue. */
  readonly queue?: FairQueue;
  /** Called for each connection that exceeds the limits. */
  readonly onRejected?: () => void;
}

/** A listening webhook server. */
export interface AdmissionServer {
  readonly port: number;
  /**
   * Shuts down: the server answers late calls, and closes each connection with its next answer. Resolves after 1 s
   * without a call, or at once if no connection is open. After about 5 s, it aborts the calls in flight.
   */
  close(): Promise<void>;
}

/**
 * How long the server keeps idle connections, milliseconds. The API server keeps its own, including spare ones without a call, for 90 s. If
 * this side closed first, calls in flight could be lost.
 */
const KEEP_ALIVE_MS = 120_000;
/** Time limit of the headers of a call, and of bytes that do not belong to a call, milliseconds. */
const HEADERS_MS = 5_000;
/** Time limit of a whole call, headers and body, milliseconds. */
const REQUEST_MS = 10_000;
/** Interval of the checks of both limits, milliseconds. */
const CHECK_MS = 1_000;
/** Time limit of a shutdown, milliseconds. */
const DRAIN_MS = 5_000;
/** A shutdown ends after this time without a call, milliseconds: long enough for a call in flight to arrive. */
const QUIET_MS = 1_000;
/** Interval of the checks during a shutdown, milliseconds. */
const SWEEP_MS = 50;
/** If a check during a shutdown is later than this, milliseconds, the machine was paused, and with it probably the API server. */
const STALL_MS = 200;

/** Serves `app` over HTTPS. Rejects with `PortUnavailable` if the port cannot be bound. */
export async function startAdmissionServer(options: ServerOptions): Promise<AdmissionServer> {
  const {
    certificate,
    clientAuthorities,
    clock,
    log,
    queue = new FairQueue({ clock }),
    onRejected = () => {},
  } = options;
  const connections = new Connections();
  const server = createServer(
    {
      ...tlsOptions(certificate.current, clientAuthorities),
      // The API server deliberately uses HTTP/1.1 for webhooks.
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: HANDSHAKE_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
    (request, response) => {
      if (connections.beginRequest(request.socket, response)) options.app(request, response);
      // On one connection, the API server sends no second call before it has the answer to the first. An attacker could pipeline many.
      else request.socket.destroy();
    },
  );
  // For connections without a call yet; keepAliveTimeout covers the others.
  server.timeout = KEEP_ALIVE_MS;
  limitConnections(server, { queue, onRejected });
  server.on('connection', (socket) => connections.addAccepted(socket));
  server.on('secureConnection', (socket) => connections.addSecure(socket));
  server.on('clientError', rejectClient);
  await listen(server, options.host, options.port);
  const stopChecking = connections.closeSendersWithoutCall(clock);
  server.on('error', (error) =>
    log.error('the HTTPS server of the webhooks reported an error', { error: error.message }),
  );
  certificate.start((pair) => {
    server.setSecureContext(tlsOptions(pair, clientAuthorities));
    connections.retire();
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      certificate.close();
      stopChecking();
      connections.retireAll();
      return drain(server, connections, clock);
    },
  };
}

/**
 * Tracks the open connections. Closes them with their next answer, by `Connection: close`, because closing an idle connection could lose a
 * request in flight.
 */
class Connections {
  /** Increases with each `retire`. A connection of an earlier generation closes with its next answer. */
  #generation = 0;
  /** TCP sockets. Node's own list misses connections that never finish the handshake. */
  readonly #accepted = new Set<Duplex>();
  readonly #generationOf = new WeakMap<Socket, number>();
  /**
   * By TLS connection: the last check that found no new bytes, with the number of bytes received until then and the monotonic time,
   * milliseconds. Undefined if the connection has not been checked since its last call.
   */
  readonly #silence = new Map<Socket, { readonly bytes: number; readonly atMs: number } | undefined>();
  readonly #unanswered = new Map<Socket, ServerResponse>();
  #requestCount = 0;
  #closing = false;

  addAccepted(socket: Duplex): void {
    this.#accepted.add(socket);
    socket.once('close', () => this.#accepted.delete(socket));
  }

  addSecure(socket: Socket): void {
    this.#generationOf.set(socket, this.#generation);
    this.#silence.set(socket, undefined);
    socket.once('close', () => this.#silence.delete(socket));
  }

  /**
   * Closes connections that send bytes for 5 s without a call. Node's own limits do not see line breaks between calls. Returns a
   * function that ends the checks.
   */
  closeSendersWithoutCall(clock: Clock): () => void {
    let cancel: Cancel = () => {};
    const check = (): void => {
      const nowMs = clock.monotonic();
      for (const [socket, silence] of this.#silence) {
        const bytes = socket.bytesRead;
        if (this.#unanswered.has(socket)) this.#silence.set(socket, undefined);
        else if (!silence || silence.bytes === bytes) this.#silence.set(socket, { bytes, atMs: nowMs });
        else if (nowMs - silence.atMs > HEADERS_MS) socket.destroy();
      }
      cancel = clock.schedule(CHECK_MS, check);
    };
    check();
    return () => cancel();
  }

  /**
   * Registers a call. Returns false, and registers nothing, while an earlier call of the connection has no answer, or if the connection
   * closes with that answer.
   */
  beginRequest(socket: Socket, response: ServerResponse): boolean {
    const earlier = this.#unanswered.get(socket);
    // A client may send its next call before Node reports that the answer was written.
    if (earlier && (!earlier.writableEnded || earlier.getHeader('connection') === 'close')) return false;
    if (this.#closing || this.#generationOf.get(socket) !== this.#generation) response.setHeader('connection', 'close');
    this.#requestCount++;
    this.#silence.set(socket, undefined);
    this.#unanswered.set(socket, response);
    response.once('close', () => {
      if (this.#unanswered.get(socket) === response) this.#unanswered.delete(socket);
    });
    return true;
  }

  /** Closes every open connection with its next answer. */
  retire(): void {
    this.#generation++;
    for (const response of this.#unanswered.values()) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
  }

  /** Closes every connection with its next answer, including those that open later. */
  retireAll(): void {
    this.#closing = true;
    this.retire();
  }

  /** True while a call has no answer yet. */
  get isBusy(): boolean {
    return this.#unanswered.size > 0;
  }

  get hasOpen(): boolean {
    return this.#accepted.size > 0;
  }

  get requestCount(): number {
    return this.#requestCount;
  }

  destroy(): void {
    for (const socket of this.#accepted) socket.destroy();
  }
}

function tlsOptions({ cert, key }: KeyPair, ca: Buffer | undefined) {
  const clientAuthentication = ca ? ({ ca, requestCert: true, rejectUnauthorized: true } as const) : {};
  return { cert, key, minVersion: 'TLSv1.2', ...clientAuthentication } as const;
}

/**
 * Continues to answer, one call for each connection, until no call has arrived for QUIET_MS. Closing idle connections or the listener at
 * once would lose requests in flight. The server also answers new connections.
 */
async function drain(server: Server, connections: Connections, clock: Clock): Promise<void> {
  let quietMs = connections.hasOpen ? 0 : QUIET_MS;
  let lastCount = connections.requestCount;
  for (let waitedMs = 0; waitedMs < DRAIN_MS && quietMs < QUIET_MS; waitedMs += SWEEP_MS) {
    const checkedAtMs = clock.monotonic();
    await sleep(clock, SWEEP_MS);
    // A busy process runs this timer before it reads calls that have arrived, and would lose them.
    await sleep(clock, 0);
    // After a stall, the API server sends what it held back, also on connections that were idle until now.
    const stalled = clock.monotonic() - checkedAtMs > SWEEP_MS + STALL_MS;
    const calledMeanwhile = connections.isBusy || connections.requestCount !== lastCount;
    quietMs = stalled || calledMeanwhile ? 0 : quietMs + SWEEP_MS;
    lastCount = connections.requestCount;
  }
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  connections.destroy();
  await closed;
}

/** Answers a client that is too slow or sends invalid HTTP with one status line. After any other error, destroys the socket. */
function rejectClient(error: NodeJS.ErrnoException, socket: Socket): void {
  const code = error.code ?? '';
  // Node counts its limits from the handshake. Closing a spare connection could lose a call that the API server is sending.
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
  if (!socket.writable || !(code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT')) {
    socket.destroy();
    return;
  }
  const status = statuses[code] ?? '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => {
    // A client could ignore the end and continue its call.
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy();
  });
}

const statuses: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};
