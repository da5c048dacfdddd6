import { type ReconcileRequest, reconcilePath } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { ApiError } from '../../kube/errors.ts';
import { CallError, type JsonAnswer, JsonCaller, type JsonRequest } from '../../kube/json-call.ts';
import { retryAfterMs } from '../../kube/status-error.ts';
import type { CallFailureCode, ComponentClient, Reply, TokenIssuer } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { acceptedReply, outcomeReply } from '../reply.ts';

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

/** URL of a component's endpoint, or the reason why the server must not call it. */
function endpointUrl(
  { endpoint }: Registration,
  allowLoopbackHttp: boolean,
): { readonly url: URL } | { readonly error: string } {
  const { service, url } = endpoint;
  if (service)
    return { url: new URL(`https://${service.name}.${service.namespace}.svc:${service.port}${reconcilePath}`) };
  const base = url === undefined ? undefined : url.replace(/\/+$/, '');
  if (base === undefined || !URL.canParse(`${base}${reconcilePath}`))
    return { error: 'endpoint.url is not a valid URL; use an https URL' };
  const parsedUrl = new URL(`${base}${reconcilePath}`);
  if (parsedUrl.username || parsedUrl.password || parsedUrl.search || parsedUrl.hash) {
    return { error: 'endpoint.url contains a user, query, or fragment; remove it' };
  }
  if (parsedUrl.protocol === 'https:') return { url: parsedUrl };
  if (parsedUrl.protocol !== 'http:' || !loopback.test(parsedUrl.hostname)) {
    return { error: 'endpoint.url is plain http, which is allowed only for loopback addresses; use https' };
  }
  return allowLoopbackHttp
    ? { url: parsedUrl }
    : {
        error:
          'endpoint.url is plain http, which this server does not allow; use https or start the server with --allow-loopback-http',
      };
}

/** Whether a URL is plain HTTP on a loopback address. A callback URL like this may be served without TLS. */
export const isLoopbackHttp = (text: string): boolean =>
  URL.canParse(text) && new URL(text).protocol === 'http:' && loopback.test(new URL(text).hostname);

interface HttpClientDeps {
  readonly tokens: Pick<TokenIssuer, 'forCall'>;
  readonly clock: Clock;
  /** Whether endpoints on loopback addresses may use plain HTTP. */
  readonly allowLoopbackHttp: boolean;
}

/** Connections to one component. */
interface Connection {
  /** The settings of the registration that determine the connections, as text, to detect changes. */
  readonly settings: string;
  readonly url: URL;
  readonly caller: JsonCaller;
  /** Creates a caller with a separate connection. */
  readonly freshCaller: () => JsonCaller;
}

/** Maximum size of an answer, bytes. */
const maxAnswerBytes = 131_072;

/** Calls components over HTTPS and trusts only the CA of each registration. Plain HTTP needs `allowLoopbackHttp` and a loopback address. */
export class HttpClient implements ComponentClient {
  readonly #deps: HttpClientDeps;
  readonly #connections = new Map<string, Connection>();

  constructor(deps: HttpClientDeps) {
    this.#deps = deps;
  }

  async invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply> {
    const { tokens, clock } = this.#deps;
    const { name, timeoutMs } = registration;
    const endpoint = endpointUrl(registration, this.#deps.allowLoopbackHttp);
    if ('error' in endpoint) return { kind: 'notAccepted', code: 'Unreachable', message: endpoint.error };
    let token: string;
    try {
      token = await tokens.forCall(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `the token for the call could not be issued: ${describe(error)}`;
      const delayMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      return { kind: 'notCalled', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
    }
    const headers = { authorization: `Bearer ${token}` };
    // Not before the token request: meanwhile, another call may replace the connections of a changed registration.
    const connection = this.#connectionTo(registration, endpoint.url);
    try {
      return readAnswer(
        await this.#exchange(connection, { headers, body: request, timeoutMs, signal }),
        request,
        clock,
      );
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return replyTo(error);
    }
  }

  /** Closes all connections and aborts the calls on them. */
  close(): void {
    for (const { caller } of this.#connections.values()) caller.close();
    this.#connections.clear();
  }

  /** Retries once on a new connection if the component closed a kept-alive one. This may call the component twice for one run. */
  async #exchange(
    { url, caller, freshCaller }: Connection,
    call: Pick<JsonRequest, 'headers' | 'body' | 'signal'> & { readonly timeoutMs: number },
  ): Promise<JsonAnswer> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    try {
      return await caller.call({ method: 'POST', url, maxAnswerBytes, ...call });
    } catch (error) {
      if (!(error instanceof CallError) || error.failure !== 'stale') throw error;
      // Other kept-alive connections may be closed, too.
      const fresh = freshCaller();
      const timeoutMs = Math.max(0, call.timeoutMs - (clock.monotonic() - startedAt));
      return await fresh.call({ method: 'POST', url, maxAnswerBytes, ...call, timeoutMs }).finally(() => fresh.close());
    }
  }

  #connectionTo({ name, endpoint, caBundle, maxConcurrent, timeoutMs }: Registration, url: URL): Connection {
    const { clock } = this.#deps;
    const settings = JSON.stringify([endpoint, caBundle, maxConcurrent, timeoutMs]);
    const current = this.#connections.get(name);
    if (current?.settings === settings) return current;
    // An empty CA list trusts no certificate; an absent one would trust the public CAs.
    const open = (connections: number): JsonCaller =>
      // A connection attempt must not outlive its call, because it counts as one of the connections.
      new JsonCaller({ ca: caBundle ?? [] }, clock, { connections, connectTimeoutMs: timeoutMs });
    const connection = { settings, url, caller: open(maxConcurrent), freshCaller: () => open(1) };
    this.#connections.set(name, connection);
    // Active calls on the old connections may complete.
    current?.caller.retire();
    return connection;
  }
}

function replyTo({ failure, timedOut, why }: CallError): Reply {
  if (failure === 'unsent') return { kind: 'notAccepted', code: 'Unreachable', message: why };
  if (timedOut) return { kind: 'failed', code: 'Timeout', message: why };
  if (failure === 'tooLarge') return { kind: 'failed', code: 'TooLarge', message: why };
  if (failure === 'malformed') return { kind: 'failed', code: 'NotJson', message: `not HTTP: ${why}` };
  return { kind: 'failed', code: 'Cut', message: why };
}

function readAnswer({ status, headers, body }: JsonAnswer, request: ReconcileRequest, clock: Clock): Reply {
  if (status === 429 || status === 503) {
    const delayMs = retryAfterMs(headers['retry-after'], clock.now());
    const message = `the component answered ${status}`;
    return { kind: 'notAccepted', code: 'Busy', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
  }
  if (status === 202) return body.length === 0 ? acceptedReply({}) : fromJson(body, acceptedReply);
  if (status === 200) return fromJson(body, (answer) => outcomeReply(answer, request));
  const code: CallFailureCode = status === 400 || status === 401 || status === 403 ? 'Refused' : 'UnexpectedStatus';
  return { kind: 'failed', code, message: `the component answered ${status}${bodyExcerpt(body)}` };
}

function fromJson(body: Buffer, replyTo: (answer: unknown) => Reply): Reply {
  let answer: unknown;
  try {
    answer = parseJson(body);
  } catch (error) {
    return { kind: 'failed', code: 'NotJson', message: describe(error) };
  }
  return replyTo(answer);
}

/** The start of an answer's body, on one line. The text is untrusted. */
function bodyExcerpt(body: Buffer): string {
  const text = body.subarray(0, 256).toString('utf8').replace(/\s+/g, ' ').trim();
  return text === '' ? '' : `: ${text}`;
}
