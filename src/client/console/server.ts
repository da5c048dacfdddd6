import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { Clock } from '../../kit/clock.ts';
import { type Listening, listenHttp } from '../../kit/listen.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import { problemOf } from '../problem.ts';
import { callOf, type Handler, jsonText, Refusal } from './call.ts';
import { assetHeaders, guard, safeHeaders, type Verdict } from './guard.ts';
import { paths } from './wire.ts';

export interface ConsoleOptions {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  readonly port: number;
  readonly token: string;
  /** By path, gzip in base64. */
  readonly assets: Readonly<Record<string, string>>;
  readonly handlers: Readonly<Record<string, Handler>>;
  /** Its abort ends all calls. */
  readonly signal: AbortSignal;
  /** At the first authorized call. */
  readonly onFirstCall: () => void;
}

export interface ConsoleServer extends Listening {
  /** Since the page last called, or held a call other than the live stream. */
  idleMs(): number;
}

/** Of a path. A page has one stream, and runs a few commands at a time. */
const MAX_CALLS = 16;
/** A browser has six connections to a console; a verdict reads up to 1 GiB. */
const maxCalls: Readonly<Record<string, number>> = { [paths.cast]: 4, [paths.verdict]: 1 };
const MAX_CONNECTIONS = 64;
const HEADERS_MS = 10_000;
/** For a whole request: a journal file comes from this machine. */
const REQUEST_MS = 300_000;

/** Rejects with CodedError `PortUnavailable`. */
export async function startConsole(options: ConsoleOptions): Promise<ConsoleServer> {
  const { clock, handlers, assets, connection, token } = options;
  const openCalls = new Map<string, number>();
  let usedAtMs = clock.monotonic();
  let hasCalled = false;
  let port = 0;

  const serve = async (request: IncomingMessage, response: ServerResponse, { path, query }: Authorized) => {
    const handler = handlers[path];
    if (!handler) throw new Refusal(404, 'no such path');
    const [open, most] = [openCalls.get(path) ?? 0, maxCalls[path] ?? MAX_CALLS];
    if (open >= most) throw new Refusal(429, `the console does ${most} of this at once; close its other tabs`);
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    openCalls.set(path, open + 1);
    const use = (): void => {
      if (path !== paths.live) usedAtMs = clock.monotonic();
    };
    if (!hasCalled) options.onFirstCall();
    hasCalled = true;
    use();
    try {
      const signal = AbortSignal.any([closed.signal, options.signal]);
      await handler(callOf(request, response, query, { connection, signal }));
    } finally {
      use();
      openCalls.set(path, (openCalls.get(path) ?? 1) - 1);
    }
  };

  const server = createServer(
    { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: HEADERS_MS },
    (request, response) => {
      // The page may leave at any time.
      response.on('error', () => undefined);
      for (const [name, value] of Object.entries(safeHeaders)) response.setHeader(name, value);
      const verdict = guard(request, { port, token });
      if ('status' in verdict) refuse(response, verdict);
      else if ('asset' in verdict) sendAsset(request, response, assets[verdict.asset], verdict.asset);
      else
        serve(request, response, verdict)
          .then(() => response.end())
          .catch((error: unknown) => fail(response, error));
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  const listening = await listenHttp(server, '127.0.0.1', options.port);
  port = listening.port;
  return {
    ...listening,
    idleMs: () => {
      const isUsed = [...openCalls].some(([path, count]) => path !== paths.live && count > 0);
      return isUsed ? 0 : clock.monotonic() - usedAtMs;
    },
  };
}

type Authorized = Extract<Verdict, { path: string }>;

function refuse(response: ServerResponse, { status, message, allow }: Extract<Verdict, { status: number }>): void {
  if (allow !== undefined) response.setHeader('allow', allow);
  // The body of a refused request is not read, so the connection cannot take another one.
  response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-type': 'application/json' }).end(jsonText({ message }));
}

/** A stream that has begun is cut, so that the page sees that it is incomplete. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) response.destroy();
  else if (error instanceof Refusal) refuse(response, error);
  else refuse(response, { status: 502, message: problemOf(error).message });
}

function sendAsset(request: IncomingMessage, response: ServerResponse, text: string | undefined, path: string): void {
  if (text === undefined) {
    refuse(response, { status: 404, message: 'no such path' });
    return;
  }
  const zipped = Buffer.from(text, 'base64');
  const acceptsGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const body = acceptsGzip ? zipped : gunzipSync(zipped);
  if (acceptsGzip) response.setHeader('content-encoding', 'gzip');
  response.writeHead(200, { ...assetHeaders(path), 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}
