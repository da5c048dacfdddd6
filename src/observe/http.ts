import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { describe } from '../kit/errors.ts';
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
export function startMetricsServer(options: Address & { readonly metrics: Metrics }): Promise<Listening> {
  const { metrics } = options;
  return start(options, (path, response) => {
    if (path !== '/metrics') return send(response, 404, TEXT, 'here is /metrics\n');
    metrics.expose().then(
      (text) => send(response, 200, metrics.contentType, text),
      (error: unknown) => send(response, 500, TEXT, `${describe(error)}\n`),
    );
  });
}

const TEXT = 'text/plain; charset=utf-8';

function report(response: ServerResponse, { healthy, checks }: HealthReport): void {
  const lines = checks.map(({ name, problem }) => (problem === undefined ? `[+] ${name}` : `[-] ${name}: ${problem}`));
  send(response, healthy ? 200 : 503, TEXT, `${[...lines, healthy ? 'ok' : 'not ok'].join('\n')}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function start(
  { host, port }: Address,
  serve: (path: string, response: ServerResponse) => void,
): Promise<Listening> {
  const listener: RequestListener = (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(response, 405, TEXT, 'GET only\n');
    return serve((request.url ?? '').replace(/\?.*/s, ''), response);
  };
  const server = createServer(
    { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000 },
    listener,
  );
  server.maxConnections = 128;
  return listenHttp(server, host, port);
}
