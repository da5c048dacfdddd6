import { isIP } from 'node:net';
import { type ReconcileRequest, reconcilePath } from '../../api/inventory/contract/request.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe, quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { JsonError, parseJson } from '../../kit/safe-json.ts';
import { ApiError } from '../../kube/errors.ts';
import { CallError, type JsonAnswer, JsonCaller, type JsonRequest } from '../../kube/json-call.ts';
import { retryAfterMs } from '../../kube/status-error.ts';
import type { ComponentClient, Reply, TokenIssuer } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { acceptedReply, outcomeReply } from '../reply.ts';

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

/** Or why the server must not call it. */
function endpointUrl(
  { endpoint }: Registration,
  allowLoopbackHttp: boolean,
): { readonly url: URL } | { readonly error: string } {
  const { service, url } = endpoint;
  if (service)
    return { url: new URL(`https://${service.name}.${service.namespace}.svc:${service.port}${reconcilePath}`) };
  if (url === undefined)
    return { error: 'the endpoint of the registration has neither service nor url; set one of them' };
  const base = url.replace(/\/+$/, '');
  if (!URL.canParse(`${base}${reconcilePath}`))
    return { error: `endpoint.url ${quote(url, 128)} is not a valid URL; use an https URL` };
  const parsedUrl = new URL(`${base}${reconcilePath}`);
  if (parsedUrl.username || parsedUrl.password || parsedUrl.search || parsedUrl.hash) {
    return { error: 'endpoint.url contains a user, query, or fragment; remove it' };
  }
  if (parsedUrl.protocol === 'https:') return { url: parsedUrl };
  if (parsedUrl.protocol !== 'http:' || !loopback.test(parsedUrl.hostname)) {
    return {
      error: `endpoint.url starts with ${parsedUrl.protocol}//${parsedUrl.hostname}; allowed are https URLs, and http only for loopback addresses; use https`,
    };
  }
  return allowLoopbackHttp
    ? { url: parsedUrl }
    : {
        error:
          'endpoint.url is plain http, which this server does not allow; use https or start the server with --allow-loopback-http',
      };
}

/** A callback URL like this may be served without TLS. */
export const isLoopbackHttp = (text: string): boolean =>
  URL.canParse(text) && new URL(text).protocol === 'http:' && loopback.test(new URL(text).hostname);

interface HttpComponentClientDeps {
  readonly tokens: Pick<TokenIssuer, 'forCall'>;
  readonly clock: Clock;
  readonly allowLoopbackHttp: boolean;
}

/** To one component, at most `maxConcurrent` of its registration. */
interface Connection {
  /** What determines the connections, as text, to detect changes. */
  readonly settings: string;
  readonly url: URL;
  readonly caller: JsonCaller;
  /** With a separate connection. */
  readonly freshCaller: () => JsonCaller;
}

const maxAnswerBytes = 131_072;

/** Trusts only the CA of each registration. Plain HTTP: see `allowLoopbackHttp`, loopback only. */
export class HttpComponentClient implements ComponentClient {
  readonly #deps: HttpComponentClientDeps;
  readonly #connections = new Map<string, Connection>();

  constructor(deps: HttpComponentClientDeps) {
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
      const message = `TokenRequest failed: ${describe(error)}; the server retries`;
      const delayMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      return { kind: 'notCalled', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
    }
    const headers = { authorization: `Bearer ${token}` };
    // Meanwhile, another call may have replaced those of a changed registration.
    const connection = this.#connectionTo(registration, endpoint.url);
    try {
      return readAnswer(
        await this.#exchange(connection, { headers, body: request, timeoutMs, signal }),
        endpoint.url,
        request,
        clock,
      );
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return replyTo(error, endpoint.url);
    }
  }

  /** Aborts the calls. */
  close(): void {
    for (const { caller } of this.#connections.values()) caller.close();
    this.#connections.clear();
  }

  /** Retries once if a kept-alive connection was closed: this may call twice for one run. */
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
      // A connection attempt counts as a connection, so it must not outlive its call.
      new JsonCaller({ ca: caBundle ?? [] }, clock, { connections, connectTimeoutMs: timeoutMs });
    const connection = { settings, url, caller: open(maxConcurrent), freshCaller: () => open(1) };
    this.#connections.set(name, connection);
    // Active calls on the old connections may complete.
    current?.caller.retire();
    return connection;
  }
}

/** For a call without a complete answer. */
function replyTo({ failure, timedOut, why: detail, cause }: CallError, url: URL): Reply {
  const why = timedOut ? detail : (connectionProblem(cause, url) ?? oneLine(detail));
  if (failure === 'unsent')
    return { kind: 'notAccepted', code: 'Unreachable', message: why === connectionClosed ? closedUnsent : why };
  if (timedOut) {
    const remedy = 'for longer work, answer 202 and report later, or increase timeoutSeconds of the registration';
    return { kind: 'failed', code: 'Timeout', message: `${why}; ${remedy}` };
  }
  if (failure === 'tooLarge')
    return { kind: 'failed', code: 'TooLarge', message: `${why}; answer less, for example smaller outputs` };
  if (failure === 'malformed')
    return {
      kind: 'failed',
      code: 'NotJson',
      message: `the answer is not HTTP: ${why}; check the endpoint of the registration and its port`,
    };
  return { kind: 'failed', code: 'Cut', message: `${why}; check the log of the component${orTls(url)}` };
}

/** Another server may answer there, such as the API server. */
const orElsewhere = ', and that spec.endpoint leads to the component';

/** HTTPS servers close a plain connection or, such as those in Go, answer 400. */
const orTls = ({ protocol }: URL): string =>
  protocol === 'http:' ? '; if it serves HTTPS, start endpoint.url with https' : '';

const connectionClosed = 'the connection closed before the whole answer arrived';
/** Before the call was sent, such as by a load balancer without a backend. */
const closedUnsent =
  'the endpoint closed the connection before the server sent the call; check that it serves HTTPS, and the log of the component';

/** Of Node.js and OpenSSL. */
const connectionProblems: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'].map((code) => [
      code,
      'the endpoint does not speak TLS; serve HTTPS there',
    ]),
  ),
  ...Object.fromEntries(
    [
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'CERT_SIGNATURE_FAILURE',
    ].map((code) => [
      code,
      'no CA of spec.caBundle signed the certificate of the endpoint; check that spec.endpoint leads to the component, and set spec.caBundle to the CA that signed its certificate',
    ]),
  ),
  EPROTO: 'the TLS handshake with the endpoint failed; check that the endpoint serves HTTPS',
  CERT_HAS_EXPIRED: 'the certificate of the endpoint, or of its CA, has expired; renew it',
  ECONNRESET: connectionClosed,
  EPIPE: connectionClosed,
  UND_ERR_SOCKET: connectionClosed,
};

function connectionProblem(cause: unknown, { hostname }: URL): string | undefined {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const host = hostname.replace(/^\[|\]$/g, '');
    const names = oneLine(String(own(own(cause, 'cert'), 'subjectaltname') ?? 'no host')).slice(0, 256);
    const name = `${isIP(host) ? 'IP' : 'DNS'}:${host}`;
    return `the certificate of the endpoint is for ${names}, not for ${host}; issue it with the subject alternative name ${name}`;
  }
  return Object.hasOwn(connectionProblems, code) ? connectionProblems[code] : undefined;
}

function readAnswer({ status, headers, body }: JsonAnswer, url: URL, request: ReconcileRequest, clock: Clock): Reply {
  if (status === 429 || status === 503) {
    const delayMs = retryAfterMs(headers['retry-after'], clock.now());
    // Without the time in Retry-After: each new text costs a write of the entry's status.
    const message = `the component answered ${status}${delayMs === undefined ? '' : ' with Retry-After'}${bodyExcerpt(body)}`;
    return { kind: 'notAccepted', code: 'Busy', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
  }
  if (status === 202) return body.length === 0 ? acceptedReply({}) : fromJson(body, acceptedReply);
  if (status === 200) return fromJson(body, (answer) => outcomeReply(answer, request));
  const rejectedPart = rejectedParts[status];
  if (rejectedPart !== undefined) {
    return {
      kind: 'failed',
      code: 'Refused',
      message: `the component rejected the call (${status})${bodyExcerpt(body)}; check how it validates ${rejectedPart}${status === 400 ? orTls(url) : ''}`,
    };
  }
  const endpoint = `the endpoint of the registration, to which the server appends ${reconcilePath}`;
  const log = 'the log of the component';
  const causes = status >= 500 ? [log, endpoint] : [endpoint, log];
  const message = `the component answered ${status}${bodyExcerpt(body)}; allowed are 200, 202, 400, 401, 403, 429, and 503; check ${causes.join(', and ')}`;
  return { kind: 'failed', code: 'UnexpectedStatus', message };
}

/** What a component may have found invalid, by the status of its answer. */
const rejectedParts: Readonly<Record<number, string>> = {
  400: 'the request, such as entry.url, auth.ca, and callback',
  401: `the token of the server${orElsewhere}`,
  403: `the token of the server${orElsewhere}`,
};

function fromJson(body: Buffer, replyFor: (answer: unknown) => Reply): Reply {
  let answer: unknown;
  try {
    answer = parseJson(body);
  } catch (error) {
    const isJson = error instanceof JsonError && error.code !== 'InvalidJson' && error.code !== 'InvalidUtf8';
    const excerpt = oneLine(body.subarray(0, 32).toString('utf8'));
    const found = isJson
      ? `the component's answer is invalid: ${error.message}`
      : `the component's answer is not JSON; it ${body.length === 0 ? 'is empty' : `starts with \`${excerpt}\``}`;
    const message = `${found}; check that the endpoint leads to the component, and what the component answers`;
    return { kind: 'failed', code: 'NotJson', message };
  }
  return replyFor(answer);
}

/** On one line, without its last period. Untrusted. */
function bodyExcerpt(body: Buffer): string {
  const text = oneLine(body.subarray(0, 256).toString('utf8')).replace(/\.$/, '');
  return text === '' ? '' : `: ${text}`;
}

/** Line breaks and control characters would break the tables of kubectl. */
const oneLine = (text: string): string => text.replace(/[\s\p{C}]+/gu, ' ').trim();
