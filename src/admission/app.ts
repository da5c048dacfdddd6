import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler } from 'express';
import { CodedError, describe } from '../kit/errors.ts';
import { FairShare } from '../kit/fair-share.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { parseBody } from '../kit/request-body.ts';
import { addressOf, BodyError, type BodyLimits, readBody } from './body.ts';
import type { Handler } from './decision.ts';
import { FairQueue } from './fair-queue.ts';
import { handleReview } from './handle-review.ts';
import type { AdmissionPorts, InventoryPorts, ReviewPorts } from './ports.ts';
import { type Route, routes } from './routes.ts';

/** Ports of the routes by feature. The server does not serve the routes of an absent feature. */
export interface ServedFeatures {
  readonly access?: AdmissionPorts | undefined;
  readonly inventory?: InventoryPorts | undefined;
}

/** Most bytes of bodies in memory, from before their first byte until their answer. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Bytes of a review that the server parses per millisecond in the worst case, which is text with characters beyond ASCII. */
const BYTES_PER_MS = 100_000;

/** Ports and limits that all calls share. */
interface SharedLimits extends BodyLimits {
  readonly ports: ReviewPorts;
}

interface AppOptions {
  /** Default: a separate queue. */
  readonly queue?: FairQueue;
  /** Maps a called path to the path of its route; undefined to answer 404. Default: the same path. */
  readonly routeOf?: (path: string) => string | undefined;
  /** Called for each call of a path without a route. */
  readonly onUnknownPath?: () => void;
}

/**
 * Serves the routes of the table: hot ones directly, all others through express. No input ends the process or stays without an answer.
 * A connection stays open only after a review. After any other answer the server closes it, so the client pays for a new handshake.
 */
export function createAdmissionApp(
  features: ServedFeatures,
  ports: ReviewPorts,
  {
    queue = new FairQueue({ clock: ports.clock }),
    routeOf = (path) => path,
    onUnknownPath = () => {},
  }: AppOptions = {},
): RequestListener {
  const shared: SharedLimits = { ports, queue, memory: new FairShare({ total: MAX_BYTES }) };
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.disable('query parser');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  const hot = new Map<string, RequestListener>();
  const paths = new Set<string>();
  for (const route of routes) {
    const handler = handlerOf(route, features);
    if (!handler) continue;
    const listener = webhookListener(route, handler, shared);
    paths.add(route.path);
    if (route.hot) hot.set(route.path, listener);
    else app.all(route.path, listener);
  }
  app.use(errorHandler(ports));
  return (request, response) => {
    const called = pathOf(request);
    const path = routeOf(called);
    if (path === undefined || !paths.has(path)) {
      onUnknownPath();
      sendText(response, 404, 'no webhook has this path');
      return;
    }
    // Drops the path segment of this installation, so that no log shows it.
    request.url = `${path}${request.url?.slice(called.length) ?? ''}`;
    (hot.get(path) ?? app)(request, response);
  };
}

function handlerOf(route: Route, { access, inventory }: ServedFeatures): Handler | undefined {
  if (route.feature === 'access') return access && route.handler(access);
  return inventory && route.handler(inventory);
}

/** Answers every request to the path of the route. */
function webhookListener(route: Route, handler: Handler, shared: SharedLimits): RequestListener {
  return (request, response) => {
    if (request.method === 'POST') {
      answer(route, handler, request, response, shared).catch((error) => fail(error, request, response, shared.ports));
      return;
    }
    response.setHeader('allow', 'POST');
    sendText(response, 405, `${route.path} allows only POST`);
  };
}

async function answer(
  route: Route,
  handler: Handler,
  request: IncomingMessage,
  response: ServerResponse,
  shared: SharedLimits,
): Promise<void> {
  const { ports, queue } = shared;
  try {
    const limitMs = deadlineMs(route, timeoutOf(request));
    const body = await readBody(request, response, shared);
    const deadline = { atMs: ports.clock.monotonic() + limitMs, limitMs };
    const decide = (): Promise<unknown> => {
      if (response.destroyed)
        throw new BodyError(400, 'IncompleteBody', 'the client closed the connection before the answer');
      return handleReview(route, handler, parseBody(body), deadline, ports);
    };
    const review = await queue.run(addressOf(request), decide, body.length / BYTES_PER_MS);
    send(response, 200, 'application/json', JSON.stringify(review));
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    if (error.code === 'Overloaded') ports.recordOverload(error instanceof BodyError ? 'bytes' : 'turn');
    sendText(response, statusOf(error), `${error.code}: ${error.message}`);
  }
}

function statusOf(error: CodedError): number {
  if (error instanceof BodyError) return error.status;
  return error.code === 'Overloaded' ? 503 : 400;
}

function pathOf({ url = '' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function timeoutOf({ url = '' }: IncomingMessage): string | null {
  const query = url.indexOf('?');
  return query < 0 ? null : new URLSearchParams(url.slice(query)).get('timeout');
}

/** Time to answer, milliseconds: the timeout in the query (default: that of the route), at most 30 s, less a reserve for the network. */
function deadlineMs(route: Route, timeout: string | null): number {
  const defaultMs = route.timeoutSeconds * 1000;
  const parsed = timeout === null ? { error: '' } : parseGoDuration(timeout);
  const timeoutMs = 'ns' in parsed && parsed.ns > 0n ? toMilliseconds(parsed.ns) : defaultMs;
  const limitMs = Math.min(timeoutMs, MAX_WAIT_MS);
  return limitMs - Math.min(200, limitMs / 10);
}

/** The longest timeout that a webhook configuration can have. */
const MAX_WAIT_MS = 30_000;

function errorHandler(ports: ReviewPorts): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => fail(error, request, response, ports);
}

function fail(error: unknown, request: IncomingMessage, response: ServerResponse, { log }: ReviewPorts): void {
  log.error('request failed', { path: pathOf(request), error: describe(error) });
  if (response.headersSent) response.destroy();
  else sendText(response, 500, 'InternalError: the server failed to answer; read its log for the cause');
}

function sendText(response: ServerResponse, status: number, text: string): void {
  // The client may still be sending a body that the server does not read.
  if (!response.headersSent) response.setHeader('connection', 'close');
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.destroyed || response.headersSent) return;
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(body));
  response.end(body);
}
