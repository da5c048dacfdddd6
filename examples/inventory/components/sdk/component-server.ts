import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { CallerAuthenticator } from './callers.ts';
import type { Clock } from './clock.ts';
import { type Component, type ReconcileRequest, readReconcileRequest, reconcilePath } from './contract.ts';
import { type Addresses, addressViolation, requireEncryption } from './http-transports.ts';
import { type FirstAnswer, Run, type RunTransports } from './run.ts';
import { CodedError, describe } from './values.ts';

interface ComponentServerOptions {
  readonly component: Component;
  readonly callers: CallerAuthenticator;
  readonly addresses: Addresses;
  readonly transports: RunTransports;
  /** PEM. Without it plain HTTP, only for loopback addresses with `--allow-loopback-http`. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** Of concurrent runs; further calls get 429. Default 64. */
  readonly maxRuns?: number;
  readonly clock: Clock;
  /** Receives at most a line in 10 s for each code of rejected calls. */
  readonly log: (line: string) => void;
}

export interface ComponentServer {
  readonly port: number;
  /** Abandons all runs. Resolves when they have ended and all connections are closed. */
  close(): Promise<void>;
}

const MAX_REQUEST_BYTES = 131_072;
/** Of concurrent TokenReviews; further calls get 429. */
const MAX_REVIEWS = 64;
/** Time limit of a TLS handshake, and of the headers of a request. */
const HEADERS_MS = 5_000;
/** Time limit of a whole request. */
const REQUEST_MS = 10_000;

/** Between lines of the log with the same code: strangers can call without end. */
const LOG_INTERVAL_MS = 10_000;

/**
 * Serves one component at `/v1/reconcile`. Rejects with the error of Node.js if it cannot, and with
 * CodedError `InsecureAddress`.
 */
export async function serveComponent(options: ComponentServerOptions): Promise<ComponentServer> {
  const { tls, host, port, clock, log, addresses } = options;
  // Calls with other addresses are rejected: this covers the callbacks, too.
  requireEncryption(addresses);
  const runs = new Map<Run, Promise<void>>();
  const load: Load = { runs, reviews: 0, reading: 0 };
  /** By code, monotonic milliseconds. */
  const nextLine = new Map<string, number>();
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response, options, load).catch((error: unknown) => {
      const { status, code, message } = error instanceof RejectedCall ? error : unavailable;
      const now = clock.monotonic();
      if (now >= (nextLine.get(code) ?? now)) {
        nextLine.set(code, now + LOG_INTERVAL_MS);
        log(`rejected a call with ${status} ${code}: ${describe(error)}`);
      }
      sendJson(request, response, status, { code, message });
    });
  };
  // By default, Node checks these limits only every 30 s, and a TLS handshake may take 120 s.
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: 1_000 };
  const server = tls
    ? createHttpsServer({ ...tls, ...limits, handshakeTimeout: HEADERS_MS }, onRequest)
    : createHttpServer(limits, onRequest);
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const run of runs.keys()) run.abandon('the component server is stopping');
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all(runs.values());
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Load {
  readonly runs: Map<Run, Promise<void>>;
  reviews: number;
  reading: number;
}

/** As the contract requires, authenticates the caller before it reads the body. */
async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  { component, callers, addresses, transports, maxRuns = 64, clock }: ComponentServerOptions,
  load: Load,
): Promise<void> {
  const { runs } = load;
  if (request.url !== reconcilePath)
    throw new RejectedCall(
      404,
      'NotFound',
      `unknown path; only ${reconcilePath} exists; correct the endpoint of the registration`,
    );
  if (request.method !== 'POST')
    throw new RejectedCall(405, 'MethodNotAllowed', 'the method is not POST, the only one allowed; use POST');
  const closed = new AbortController();
  response.once('close', () => closed.abort(new CodedError('CallerGone', 'the caller closed the connection')));
  await authenticate(request, callers, load, closed.signal);
  if (runs.size + load.reading >= maxRuns)
    throw new RejectedCall(429, 'Busy', `${maxRuns} runs are active, which is the limit; retry later`);
  load.reading += 1;
  let call: ReconcileRequest;
  try {
    call = await readRequest(request);
  } finally {
    load.reading -= 1;
  }
  if (call.component !== component.name) {
    throw new RejectedCall(
      400,
      'OtherComponent',
      `the request is for another component; this endpoint serves only ${component.name}; check the endpoint and the name of the registration`,
    );
  }
  const violation = addressViolation(call, addresses);
  if (violation) throw new RejectedCall(400, 'ForeignAddress', violation);
  const run = new Run(component, call, transports, clock);
  const ended = run.execute().finally(() => runs.delete(run));
  runs.set(run, ended);
  response.once('close', () => {
    if (!response.writableFinished && !run.accepted) run.abandon('the caller closed the connection');
  });
  const first = await run.answer;
  sendJson(request, response, first.kind === 'accepted' ? 202 : 200, bodyOf(call, first));
}

async function authenticate(
  request: IncomingMessage,
  callers: CallerAuthenticator,
  load: Load,
  signal: AbortSignal,
): Promise<void> {
  const token = bearerToken(request);
  if (load.reviews >= MAX_REVIEWS)
    throw new RejectedCall(
      429,
      'Busy',
      `${MAX_REVIEWS} callers are being authenticated, which is the limit; retry later`,
    );
  load.reviews += 1;
  try {
    if (token && (await callers.isServer(token, signal))) return;
  } finally {
    load.reviews -= 1;
  }
  throw new RejectedCall(
    401,
    'Unauthorized',
    'the bearer token is missing or invalid; only the server may call, with a token for this component; check the component name and the server namespace that this component is configured with',
  );
}

async function readRequest(request: IncomingMessage): Promise<ReconcileRequest> {
  if (!/^application\/json[\t ]*(;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new RejectedCall(
      415,
      'UnsupportedMediaType',
      'the content type is not application/json, the only allowed one; set the header Content-Type',
    );
  }
  const text = await bodyText(request);
  if (text === undefined)
    throw new RejectedCall(
      413,
      'BodyTooLarge',
      `the body is too large; at most ${MAX_REQUEST_BYTES} bytes are allowed; check the size of auth.ca`,
    );
  try {
    return readReconcileRequest(JSON.parse(text));
  } catch (error) {
    throw new RejectedCall(400, 'InvalidRequest', describe(error));
  }
}

/** Undefined if it is larger than allowed. */
function bodyText(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_REQUEST_BYTES) resolve(undefined);
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks).toString()));
    request.on('error', reject);
    request.on('close', () => reject(new Error('the connection ended before the body did')));
  });
}

/** Undefined also if longer than 16,384 characters. */
const bearerToken = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '')?.[1];

/** Unless the connection is closed. 429 and 503 get `Retry-After: 1`. */
function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // The rest of an unread body must not be parsed as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
    ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(text);
}

function bodyOf({ run }: ReconcileRequest, first: FirstAnswer): object {
  if (first.kind === 'accepted') return { run: run.id, leaseSeconds: first.leaseSeconds };
  return { run: run.id, ...first.outcome };
}

class RejectedCall extends CodedError {
  override readonly name = 'RejectedCall';
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(code, message);
    this.status = status;
  }
}

/** For other errors: their messages may name accounts and addresses, which strangers must not see. */
const unavailable = new RejectedCall(
  503,
  'Unavailable',
  'the component cannot process calls now; check its log, and retry later',
);
