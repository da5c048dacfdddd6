import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ReconcileRequest, readReconcileRequest, reconcilePath } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { listen } from '../../kit/listen.ts';
import { collectBody } from '../../kit/request-body.ts';
import { parseJson } from '../../kit/safe-json.ts';
import type { Log } from '../../observe/log.ts';
import { bearerToken, sendJson } from '../http/json-server.ts';
import type { Component } from '../ports.ts';
import type { Callers } from './callers.ts';
import { type Addresses, foreignAddress } from './http-transports.ts';
import { type FirstAnswer, Run, type RunTransports } from './run.ts';

interface ComponentServerOptions {
  readonly component: Component;
  readonly callers: Callers;
  readonly addresses: Addresses;
  readonly doors: RunTransports;
  /** PEM. Undefined: plain http, which the server calls on loopback addresses alone. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Runs at a time; whoever asks for one more is told to come back. Default 64. */
  readonly maxRuns?: number;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ComponentServer {
  readonly port: number;
  /** Gives up what still runs and resolves when nothing is left. */
  close(): Promise<void>;
}

const MAX_REQUEST_BYTES = 131_072;
/** Callers that the API server is asked about at a time. */
const MAX_ASKED = 64;
/** Until all of the request is there. */
const HEADERS_MS = 5_000;
const REQUEST_MS = 10_000;

/** Serves one component as the contract says. Rejects with `PortUnavailable`. */
export async function serveComponent(options: ComponentServerOptions): Promise<ComponentServer> {
  const runs = new Map<Run, Promise<void>>();
  const load: Load = { runs, asked: 0, reading: 0 };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response, options, load).catch((error: unknown) => {
      const { status, code, message } =
        error instanceof Refusal ? error : new Refusal(503, 'Unavailable', describe(error));
      options.log.warn('a call was refused', { component: options.component.name, code });
      sendJson(request, response, status, { code, message });
    });
  };
  const { tls, host, port } = options;
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS };
  const server = tls ? createHttpsServer({ ...tls, ...limits }, onRequest) : createHttpServer(limits, onRequest);
  await listen(server, host, port);
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const run of runs.keys()) run.abandon('the component stops');
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all(runs.values());
      server.closeAllConnections();
      await closed;
    },
  };
}

/** What a server is busy with. */
interface Load {
  readonly runs: Map<Run, Promise<void>>;
  /** Callers that the API server is being asked about. */
  asked: number;
  /** Requests of the server, for one run each, that are not read yet. */
  reading: number;
}

/** In the order of the contract: the path, the caller, and only then the body. */
async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  { component, callers, addresses, doors, maxRuns = 64, clock }: ComponentServerOptions,
  load: Load,
): Promise<void> {
  const { runs } = load;
  if (request.url !== reconcilePath) throw new Refusal(404, 'NotFound', `there is nothing but ${reconcilePath}`);
  if (request.method !== 'POST') throw new Refusal(405, 'MethodNotAllowed', 'runs are asked for by POST');
  const gone = new AbortController();
  response.once('close', () => gone.abort(new CodedError('CallerGone', 'the caller is gone')));
  await authenticate(request, callers, load, gone.signal);
  if (runs.size + load.reading >= maxRuns) throw new Refusal(429, 'Busy', `${maxRuns} runs are going on already`);
  load.reading += 1;
  let asked: ReconcileRequest;
  try {
    asked = await readRequest(request);
  } finally {
    load.reading -= 1;
  }
  if (asked.component !== component.name) {
    throw new Refusal(400, 'OtherComponent', `this is ${component.name}, and the request is for another component`);
  }
  const foreign = foreignAddress(asked, addresses);
  if (foreign) throw new Refusal(400, 'ForeignAddress', foreign);
  const run = new Run(component, asked, doors, clock);
  const ended = run.execute().finally(() => runs.delete(run));
  runs.set(run, ended);
  response.once('close', () => {
    if (!response.writableFinished && !run.accepted) run.abandon('the caller is gone');
  });
  const first = await run.answer;
  sendJson(request, response, first.kind === 'accepted' ? 202 : 200, bodyOf(asked, first));
}

async function authenticate(
  request: IncomingMessage,
  callers: Callers,
  load: Load,
  signal: AbortSignal,
): Promise<void> {
  const token = bearerToken(request);
  if (load.asked >= MAX_ASKED) throw new Refusal(429, 'Busy', `${MAX_ASKED} callers are being looked at already`);
  load.asked += 1;
  try {
    if (token && (await callers.isServer(token, signal))) return;
  } finally {
    load.asked -= 1;
  }
  throw new Refusal(401, 'Unauthorized', 'a token of the server, for this component, is needed');
}

async function readRequest(request: IncomingMessage): Promise<ReconcileRequest> {
  if (!/^application\/json[\t ]*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new Refusal(415, 'UnsupportedMediaType', 'the body must be application/json');
  }
  const bytes = await collectBody(request, { maxBytes: MAX_REQUEST_BYTES });
  if (!bytes) throw new Refusal(413, 'BodyTooLarge', `the body may have ${MAX_REQUEST_BYTES} bytes at most`);
  let body: unknown;
  try {
    body = parseJson(bytes);
  } catch (error) {
    throw new Refusal(400, 'InvalidRequest', describe(error));
  }
  const read = readReconcileRequest(body);
  if (read.ok) return read.value;
  const errors = read.errors.map(({ field, message }) => `${field || 'the body'} ${message}`).join('; ');
  throw new Refusal(400, 'InvalidRequest', errors);
}

function bodyOf({ run }: ReconcileRequest, first: FirstAnswer): object {
  if (first.kind === 'accepted') return { run: run.id, leaseSeconds: first.leaseSeconds };
  return { run: run.id, ...first.outcome };
}

/** An answer without a run; `status` is that of HTTP. */
class Refusal extends CodedError {
  override readonly name = 'Refusal';
  constructor(
    readonly status: number,
    code: string,
    message: string,
  ) {
    super(code, message);
  }
}
