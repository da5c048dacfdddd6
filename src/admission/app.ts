import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler } from 'express';
import { CodedError, describe } from '../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { parseJson } from '../kit/safe-json.ts';
import type { Handler } from './decision.ts';
import { handleReview } from './handle-review.ts';
import type { AdmissionPorts, InventoryPorts, ReviewPorts } from './ports.ts';
import { type Route, routes } from './routes.ts';

/** What the routes of each feature need; those of a feature that is absent are not served. */
export interface ServedFeatures {
  readonly access?: AdmissionPorts | undefined;
  readonly inventory?: InventoryPorts | undefined;
}

/**
 * Serves the routes of the table: the hot ones by themselves, all others through express. Nothing a client sends ends the process or
 * goes without an answer.
 */
export function createAdmissionApp(features: ServedFeatures, ports: ReviewPorts): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.disable('query parser');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  const hot = new Map<string, RequestListener>();
  for (const route of routes) {
    const handler = handlerOf(route, features);
    if (!handler) continue;
    const listener = webhookListener(route, handler, ports);
    if (route.hot) hot.set(route.path, listener);
    else app.all(route.path, listener);
  }
  app.use((_request, response) => sendText(response, 404, 'no webhook here'));
  app.use(lastResort(ports));
  return (request, response) => (hot.get(pathOf(request)) ?? app)(request, response);
}

function handlerOf(route: Route, { access, inventory }: ServedFeatures): Handler | undefined {
  if (route.feature === 'access') return access && route.handler(access);
  return inventory && route.handler(inventory);
}

/** Answers every request to the path of the route. */
function webhookListener(route: Route, handler: Handler, ports: ReviewPorts): RequestListener {
  return (request, response) => {
    if (request.method === 'POST') {
      answer(route, handler, request, response, ports).catch((error) => fail(error, request, response, ports));
      return;
    }
    response.setHeader('allow', 'POST');
    sendText(response, 405, `${route.path} takes POST`);
  };
}

async function answer(
  route: Route,
  handler: Handler,
  request: IncomingMessage,
  response: ServerResponse,
  ports: ReviewPorts,
): Promise<void> {
  try {
    const body = parseJson(await readBody(request));
    const review = await handleReview(route, handler, body, deadlineMs(route, timeoutOf(request)), ports);
    send(response, 200, 'application/json', JSON.stringify(review));
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    // Bytes that nobody reads are still on their way: the connection cannot be used again.
    if (!request.complete) response.setHeader('connection', 'close');
    sendText(response, error instanceof BodyError ? error.status : 400, `${error.code}: ${error.message}`);
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function timeoutOf({ url = '' }: IncomingMessage): string | null {
  const query = url.indexOf('?');
  return query < 0 ? null : new URLSearchParams(url.slice(query)).get('timeout');
}

/** Time to answer in: what the apiserver says it will wait, less what the way back may take. */
function deadlineMs(route: Route, timeout: string | null): number {
  const waits = route.timeoutSeconds * 1000;
  const parsed = timeout === null ? { error: '' } : parseGoDuration(timeout);
  const asked = 'ns' in parsed && parsed.ns > 0n ? toMilliseconds(parsed.ns) : waits;
  const limit = Math.min(asked, MAX_WAIT_MS);
  return limit - Math.min(200, limit / 10);
}

/** The longest timeout that a webhook configuration may have. */
const MAX_WAIT_MS = 30_000;

function lastResort(ports: ReviewPorts): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => fail(error, request, response, ports);
}

function fail(error: unknown, request: IncomingMessage, response: ServerResponse, { log }: ReviewPorts): void {
  log.error('request failed', { path: pathOf(request), error: describe(error) });
  if (response.headersSent) response.destroy();
  else sendText(response, 500, 'InternalError: the server failed to answer; its log says why');
}

const sendText = (response: ServerResponse, status: number, text: string): void =>
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);

function send(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.destroyed || response.headersSent) return;
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(body));
  response.end(body);
}

/** etcd takes objects up to 1.5 MiB, and an UPDATE carries two of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** A request that is not worth parsing; `status` is what HTTP calls it. */
class BodyError extends CodedError {
  override readonly name = 'BodyError';
  constructor(
    readonly status: 400 | 413 | 415,
    code: string,
    message: string,
  ) {
    super(code, message);
  }
}

/** The bytes of a JSON body, counted while they arrive. Rejects with BodyError before the limit is exceeded, whatever the headers claim. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  expectJson(request);
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) throw tooLarge(`${announced} bytes were announced`);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const fail = (error: unknown): void => {
      request.removeListener('data', onData);
      // What was read so far is let go of; the caller closes the connection.
      chunks.length = 0;
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > MAX_BODY_BYTES) fail(tooLarge('more was sent'));
      else chunks.push(chunk);
    };
    request.on('data', onData);
    request.once('end', () => resolve(Buffer.concat(chunks, length)));
    request.once('error', fail);
    request.once('close', () => {
      // It comes after every request; an error and its stack for each would be the dearest part of most.
      if (!request.complete) fail(new BodyError(400, 'IncompleteBody', 'the connection ended before the body did'));
    });
  });
}

function expectJson(request: IncomingMessage): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json[\t ]*(;|$)/i.test(type)) {
    throw new BodyError(415, 'UnsupportedMediaType', 'the body must be application/json');
  }
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    throw new BodyError(415, 'UnsupportedEncoding', 'the body must not be compressed');
  }
}

function tooLarge(found: string): BodyError {
  return new BodyError(413, 'BodyTooLarge', `the body may have ${MAX_BODY_BYTES} bytes at most; ${found}`);
}
