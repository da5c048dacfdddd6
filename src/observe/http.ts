import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { FairShare } from '../kit/fair-share.ts';
import { type Listening, listenHttp } from '../kit/listen.ts';
import type { Health, HealthReport } from './health.ts';
import type { Metrics } from './metrics.ts';

interface Address {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/**
 * `/healthz` and `/livez` (would a restart help?) and `/readyz` (may this process get traffic?): 200 or 503, one line a check.
 * Rejects with `PortUnavailable` when the port cannot be had.
 */
export function startProbeServer(options: Address & { readonly health: Health }): Promise<Listening> {
  const { health } = options;
  return start(options, (path, response) => {
    if (path === '/readyz') return report(response, health.readiness());
    if (path === '/healthz' || path === '/livez') return report(response, health.liveness());
    return send(response, 404, TEXT, 'here are /healthz, /livez and /readyz\n');
  });
}

/** `/metrics` in the Prometheus text format. Rejects with `PortUnavailable` when the port cannot be had. */
export function startMetricsServer(
  options: Address & { readonly metrics: Metrics; readonly clock: Clock },
): Promise<Listening> {
  const { metrics, clock } = options;
  const expose = sharedExposition(metrics, clock);
  return start(options, (path, response) => {
    if (path !== '/metrics') return send(response, 404, TEXT, 'here is /metrics\n');
    expose().then(
      (text) => send(response, 200, metrics.contentType, text),
      (error: unknown) => send(response, 500, TEXT, `${describe(error)}\n`),
    );
  });
}

/** Between two expositions, milliseconds. */
const REST_MS = 100;

/** One exposition at a time, and a rest after each. Whoever asks while one is being made waits for the next, which all of them share. */
function sharedExposition(metrics: Metrics, clock: Clock): () => Promise<Buffer> {
  let running: Promise<unknown> = Promise.resolve();
  let restsUntilMs = 0;
  let next: Promise<Buffer> | undefined;
  const run = async (): Promise<Buffer> => {
    await running;
    const restMs = restsUntilMs - clock.monotonic();
    if (restMs > 0) await sleep(clock, restMs);
    next = undefined;
    const exposing = metrics.expose().finally(() => {
      restsUntilMs = clock.monotonic() + REST_MS;
    });
    running = exposing.catch(() => undefined);
    return Buffer.from(await exposing);
  };
  return () => {
    next ??= run();
    return next;
  };
}

const TEXT = 'text/plain; charset=utf-8';

function report(response: ServerResponse, { healthy, checks }: HealthReport): void {
  const lines = checks.map(({ name, problem }) => (problem === undefined ? `[+] ${name}` : `[-] ${name}: ${problem}`));
  send(response, healthy ? 200 : 503, TEXT, `${[...lines, healthy ? 'ok' : 'not ok'].join('\n')}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body), connection: 'close' };
  response.writeHead(status, headers);
  response.end(body);
}

/** Connections at once, and those of one address. */
const MAX_CONNECTIONS = 128;
const MAX_OF_ADDRESS = 64;
const PATIENCE_MS = 5_000;

/**
 * A connection carries one call. When all places are taken, an address with few connections takes the place of the longest-lived one of
 * the address that has most, so that those who only hold connections do not keep a probe out.
 */
async function start(
  { host, port }: Address,
  serve: (path: string, response: ServerResponse) => void,
): Promise<Listening> {
  const asked = new WeakSet<Socket>();
  const listener: RequestListener = (request, response) => {
    if (asked.has(request.socket)) return request.socket.destroy();
    asked.add(request.socket);
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, TEXT, 'GET only\n');
    return serve((request.url ?? '').replace(/\?.*/s, ''), response);
  };
  const server = createServer(
    { headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS, connectionsCheckingInterval: 1_000 },
    listener,
  );
  // Whoever does not read the answer, either.
  server.timeout = PATIENCE_MS;
  const places = new FairShare({ total: MAX_CONNECTIONS, perSource: MAX_OF_ADDRESS });
  server.on('connection', (socket) => {
    const leave = places.take(socket.remoteAddress ?? '', 1, () => socket.destroy());
    if (leave) socket.once('close', leave);
    else socket.destroy();
  });
  return listenHttp(server, host, port);
}
