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

/** By feature. The server does not serve the webhooks of an absent one. */
export interface ServedFeatures {
  readonly access?: AdmissionPorts | undefined;
  readonly inventory?: InventoryPorts | undefined;
}

/** Of bodies in memory. A body counts from before its first byte until the response closes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Parsed in a millisecond in the worst case: text with characters beyond ASCII. */
const BYTES_PER_MS = 100_000;

interface CallDeps extends BodyLimits {
  readonly ports: ReviewPorts;
}

interface AppOptions {
  /** Of bodies and reviews. Default: a new queue. */
  readonly queue?: FairQueue;
  readonly onUnknownPath?: () => void;
}

/**
 * Serves the webhooks in `routes`: those that are `hot` directly, all others through express.
 *
 *   connection → body (memory, queue) → turn in the queue → handleReview → AdmissionReview
 *
 * A connection stays open only after a review: any other answer costs the client a new handshake.
 */
export function createAdmissionApp(
  features: ServedFeatures,
  ports: ReviewPorts,
  { queue = new FairQueue({ clock: ports.clock }), onUnknownPath = () => {} }: AppOptions = {},
): RequestListener {
  const shared: CallDeps = { ports, queue, memory: new FairShare({ total: MAX_BYTES }) };
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
    if (!paths.has(path)) {
      onUnknownPath();
      sendText(response, 404, 'no webhook has this path; check the path in the webhook configuration');
      return;
    }
    request.url = `${path}${request.url?.slice(called.length) ?? ''}`;
    (hot.get(path) ?? app)(request, response);
  };
}

/** Without a random segment at its end, which the configurations of some installations have. */
const routeOf = (path: string): string => path.replace(/(?<=^\/[^/]+)\/[0-9a-f]{32}$/, '');

function handlerOf(route: Route, { access, inventory }: ServedFeatures): Handler | undefined {
  if (route.feature === 'access') return access && route.handler(access);
  return inventory && route.handler(inventory);
}

/** Answers every request to the path of the route. */
function webhookListener(route: Route, handler: Handler, shared: CallDeps): RequestListener {
  return (request, response) => {
    if (request.method === 'POST') {
      answer(route, handler, request, response, shared).catch((error) => fail(error, request, response, shared.ports));
      return;
    }
    response.setHeader('allow', 'POST');
    sendText(response, 405, 'method not allowed; allowed method: POST');
  };
}

async function answer(
  route: Route,
  handler: Handler,
  request: IncomingMessage,
  response: ServerResponse,
  shared: CallDeps,
): Promise<void> {
  const { ports, queue } = shared;
  try {
    const limitMs = timeLimitMs(route, timeoutOf(request));
    const body = await readBody(request, response, shared);
    const address = addressOf(request);
    const call = { address, deadlineMs: ports.clock.monotonic() + limitMs, limitMs };
    const decide = (): Promise<unknown> => {
      // No answer can reach the client, so the review needs no decision.
      if (response.destroyed)
        throw new BodyError(400, 'IncompleteBody', 'the client closed the connection before the answer');
      return handleReview(route, handler, parseBody(body), call, ports);
    };
    const review = await queue.run(address, decide, { leastMs: body.length / BYTES_PER_MS });
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

/** Milliseconds: the timeout of the query, else of the route, less up to 200 ms for the network. */
function timeLimitMs(route: Route, timeout: string | null): number {
  const parsed = parseGoDuration(timeout ?? '');
  const isValid = 'ns' in parsed && parsed.ns > 0n;
  const timeoutMs = isValid ? toMilliseconds(parsed.ns) : route.timeoutSeconds * 1000;
  const limitMs = Math.min(timeoutMs, MAX_WAIT_MS);
  return limitMs - Math.min(200, limitMs / 10);
}

/** The longest timeout that a webhook configuration can have. */
const MAX_WAIT_MS = 30_000;

function errorHandler(ports: ReviewPorts): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => fail(error, request, response, ports);
}

function fail(error: unknown, request: IncomingMessage, response: ServerResponse, { log }: ReviewPorts): void {
  log.error('the server failed to answer a call to the webhook port', {
    path: pathOf(request),
    error: describe(error),
  });
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
