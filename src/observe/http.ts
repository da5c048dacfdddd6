import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { FairShare } from '../kit/fair-share.ts';
import { type Listening, listenHttp } from '../kit/listen.ts';
import type { HealthReport } from './health.ts';
import type { Metrics } from './metrics.ts';

export interface Address {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
}

interface Probes {
  readonly readiness: () => HealthReport | Promise<HealthReport>;
  readonly liveness: () => HealthReport;
}

/**
 * `/healthz`, `/livez` (would a restart help?), `/readyz` (may this process get traffic?): 200 or
 * 503, and one line for each check. As in Kubernetes, `/readyz?exclude=NAME` does without one.
 * Rejects with `PortUnavailable`.
 */
export function startProbeServer(options: Address & Probes): Promise<Listening> {
  return start(options, async (path, response, query) => {
    if (path === '/readyz') return report(response, without(query.getAll('exclude'), await options.readiness()));
    if (path === '/healthz' || path === '/livez') return report(response, options.liveness());
    return send(response, 404, TEXT, 'not found; available paths: /healthz, /livez, /readyz\n');
  });
}

/** In the Prometheus text format. Rejects with `PortUnavailable`. */
export function startMetricsServer(
  options: Address & { readonly metrics: Metrics; readonly clock: Clock },
): Promise<Listening> {
  const { metrics, clock } = options;
  const expose = sharedExposition(metrics, clock);
  return start(options, (path, response) => {
    if (path !== '/metrics') return send(response, 404, TEXT, 'not found; available path: /metrics\n');
    expose().then(
      (text) => send(response, 200, metrics.contentType, text),
      (error: unknown) => send(response, 500, TEXT, `${describe(error)}\n`),
    );
  });
}

const PAUSE_MS = 100;

/** One at a time, with a pause after each. Scrapes that arrive meanwhile share the next one. */
function sharedExposition(metrics: Metrics, clock: Clock): () => Promise<Buffer> {
  let running: Promise<unknown> = Promise.resolve();
  let pausedUntilMs = 0;
  let next: Promise<Buffer> | undefined;
  const run = async (): Promise<Buffer> => {
    await running;
    const pauseMs = pausedUntilMs - clock.monotonic();
    if (pauseMs > 0) await sleep(clock, pauseMs);
    next = undefined;
    const exposing = metrics.expose().finally(() => {
      pausedUntilMs = clock.monotonic() + PAUSE_MS;
    });
    running = exposing.catch(() => undefined);
    return Buffer.from(await exposing);
  };
  return () => {
    next ??= run();
    return next;
  };
}

function without(names: readonly string[], { checks }: HealthReport): HealthReport {
  const left = checks.filter(({ name }) => !names.includes(name));
  return { healthy: left.every(({ problem }) => problem === undefined), checks: left };
}

const TEXT = 'text/plain; charset=utf-8';

function report(response: ServerResponse, { healthy, checks }: HealthReport): void {
  const lines = checks.map(({ name, problem, warning }) => {
    if (problem !== undefined) return `[-] ${name}: ${problem}`;
    return warning === undefined ? `[+] ${name}` : `[!] ${name}: ${warning}`;
  });
  send(response, healthy ? 200 : 503, TEXT, `${[...lines, healthy ? 'ok' : 'not ok'].join('\n')}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body), connection: 'close' };
  response.writeHead(status, headers);
  response.end(body);
}

/** In total, and from one address. */
const MAX_CONNECTIONS = 128;
const MAX_PER_ADDRESS = 64;
const CALL_TIMEOUT_MS = 5_000;

/**
 * One call for each connection. When full, the address with most connections loses its oldest idle
 * one, or its oldest: clients that keep connections open cannot lock out a probe.
 */
async function start(
  { host, port }: Address,
  serve: (path: string, response: ServerResponse, query: URLSearchParams) => void | Promise<void>,
): Promise<Listening> {
  // Connections that have carried their call.
  const served = new WeakSet<Socket>();
  const listener: RequestListener = (request, response) => {
    if (served.has(request.socket)) return request.socket.destroy();
    served.add(request.socket);
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, TEXT, 'method not allowed; allowed methods: GET, HEAD\n');
    const [path = '', ...query] = (request.url ?? '').split('?');
    return serve(path, response, new URLSearchParams(query.join('?')));
  };
  const server = createServer(
    // Each check of open connections wakes an idle process, so the checks are rare.
    {
      headersTimeout: CALL_TIMEOUT_MS,
      requestTimeout: CALL_TIMEOUT_MS,
      connectionsCheckingInterval: CALL_TIMEOUT_MS,
    },
    listener,
  );
  // Also closes the connection of a client that does not read its answer.
  server.timeout = CALL_TIMEOUT_MS;
  const connections = new FairShare({ total: MAX_CONNECTIONS, perSource: MAX_PER_ADDRESS });
  server.on('connection', (socket) => {
    const isIdle = (): boolean => !served.has(socket);
    const address = socket.remoteAddress;
    // Without an address, the client has left already, and must not replace another one.
    const release = address === undefined ? undefined : connections.acquire(address, 1, () => socket.destroy(), isIdle);
    if (release) socket.once('close', release);
    else socket.destroy();
  });
  return listenHttp(server, host, port);
}
