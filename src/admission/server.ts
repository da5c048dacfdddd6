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
  /** 0 for any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
  /** PEM. If set, callers need a client certificate from one of them. */
  readonly clientAuthorities?: Buffer | undefined;
  /** Of the handshakes. Default: a separate queue. */
  readonly queue?: FairQueue;
  readonly onRejected?: () => void;
}

export interface AdmissionServer {
  readonly port: number;
  /**
   * Answers late calls, and closes connections with their next answer. Resolves after 1 s without a
   * call, or after about 5 s in any case.
   */
  close(): Promise<void>;
}

/** Idle connections: longer than the API server's 90 s, or calls in flight could be lost. */
const KEEP_ALIVE_MS = 120_000;
/** For the headers of a call, and for bytes that belong to no call. */
const HEADERS_MS = 5_000;
/** For headers and body. */
const REQUEST_MS = 10_000;
/** Between checks of both limits. */
const CHECK_MS = 1_000;
/** Of a shutdown. */
const DRAIN_MS = 5_000;
/** Without a call, a shutdown ends: long enough for one in flight to arrive. */
const QUIET_MS = 1_000;
/** Between checks during a shutdown. */
const SWEEP_MS = 50;
/** If a check is later than this, the machine was paused, and probably the API server with it. */
const STALL_MS = 200;

/** Rejects with `PortUnavailable` if the port cannot be bound. */
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
      // The API server sends no call before the last answer. An attacker could pipeline many.
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

/** They close with their next answer: closing an idle one could lose a call in flight. */
class Connections {
  /** Grows with each `retire`: earlier connections close with their next answer. */
  #generation = 0;
  /** TCP sockets. Node's own list misses connections that never finish the handshake. */
  readonly #accepted = new Set<Duplex>();
  readonly #generationOf = new WeakMap<Socket, number>();
  /** By TLS connection: bytes and monotonic ms at the last check without new bytes. */
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

  /** After 5 s of bytes without a call: Node's limits miss line breaks between calls. */
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

  /** False if an earlier call of the connection has no answer, or closes it with its answer. */
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

  retire(): void {
    this.#generation++;
    for (const response of this.#unanswered.values()) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
  }

  /** Including those that open later. */
  retireAll(): void {
    this.#closing = true;
    this.retire();
  }

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

/** Answers until no call has arrived for QUIET_MS: closing at once would lose calls in flight. */
async function drain(server: Server, connections: Connections, clock: Clock): Promise<void> {
  let quietMs = connections.hasOpen ? 0 : QUIET_MS;
  let lastCount = connections.requestCount;
  for (let waitedMs = 0; waitedMs < DRAIN_MS && quietMs < QUIET_MS; waitedMs += SWEEP_MS) {
    const checkedAtMs = clock.monotonic();
    await sleep(clock, SWEEP_MS);
    // A busy process runs this timer before it reads calls that have arrived, and would lose them.
    await sleep(clock, 0);
    // After a stall, the API server sends what it held back, also on idle connections.
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

/** One status line for a slow client or invalid HTTP; after other errors, nothing. */
function rejectClient(error: NodeJS.ErrnoException, socket: Socket): void {
  const code = error.code ?? '';
  // Node counts from the handshake. Closing a spare connection could lose a call being sent.
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
