import express, { type Application, type ErrorRequestHandler, type Request, type Response } from 'express';
import { CodedError, describe } from '../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { parseJson } from '../kit/safe-json.ts';
import type { Handler } from './decision.ts';
import { handleReview } from './handle-review.ts';
import { watchPod } from './handlers/pod-watch.ts';
import { stampRequest } from './handlers/request-stamp.ts';
import { validateRequest } from './handlers/request-validation.ts';
import { validateTemplate } from './handlers/template-validation.ts';
import type { AdmissionPorts, RequestKind, TemplateKind } from './ports.ts';
import { BodyError, readBody } from './read-body.ts';
import { type Route, routes } from './routes.ts';

/** Serves every route of the table. Nothing a client sends ends the process or goes without an answer. */
export function createAdmissionApp(ports: AdmissionPorts): Application {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', 'simple');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  for (const route of routes) {
    const handler = handlerOf(route, ports);
    app.post(route.path, (request, response) => serve(route, handler, request, response, ports));
    app.all(route.path, (_request, response) => {
      response.setHeader('allow', 'POST');
      sendText(response, 405, `${route.path} takes POST`);
    });
  }
  app.use((_request, response) => sendText(response, 404, 'no webhook here'));
  app.use(lastResort(ports));
  return app;
}

function handlerOf({ does, resource }: Route, ports: AdmissionPorts): Handler {
  switch (does) {
    case 'stampRequest':
      return stampRequest(ports.clock);
    case 'validateRequest':
      return validateRequest(resource.kind as RequestKind, ports);
    case 'validateTemplate':
      return validateTemplate(resource.kind as TemplateKind);
    case 'watchPod':
      return watchPod(ports);
  }
}

async function serve(
  route: Route,
  handler: Handler,
  request: Request,
  response: Response,
  ports: AdmissionPorts,
): Promise<void> {
  try {
    const body = parseJson(await readBody(request));
    const answer = await handleReview(route, handler, body, deadlineMs(route, request.query['timeout']), ports);
    send(response, 200, 'application/json', JSON.stringify(answer));
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    // Bytes that nobody reads are still on their way: the connection cannot be used again.
    if (!request.complete) response.setHeader('connection', 'close');
    sendText(response, error instanceof BodyError ? error.status : 400, `${error.code}: ${error.message}`);
  }
}

/** Time to answer in: what the apiserver says it will wait, less what the way back may take. */
function deadlineMs(route: Route, timeout: unknown): number {
  const waits = route.timeoutSeconds * 1000;
  const parsed = typeof timeout === 'string' ? parseGoDuration(timeout) : { error: '' };
  const asked = 'ns' in parsed && parsed.ns > 0n ? toMilliseconds(parsed.ns) : waits;
  const limit = Math.min(asked, MAX_WAIT_MS);
  return limit - Math.min(200, limit / 10);
}

/** The longest timeout that a webhook configuration may have. */
const MAX_WAIT_MS = 30_000;

function lastResort({ log }: AdmissionPorts): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    log.error('request failed', { path: request.path, error: describe(error) });
    if (response.headersSent) response.destroy();
    else sendText(response, 500, 'InternalError: the server failed to answer; its log says why');
  };
}

const sendText = (response: Response, status: number, text: string): void =>
  send(response, status, 'text/plain; charset=utf-8', `${text}\n`);

function send(response: Response, status: number, type: string, body: string): void {
  if (response.destroyed || response.headersSent) return;
  response.statusCode = status;
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(body));
  response.end(body);
}
