import { readOutcome } from '../../api/inventory/contract/outcome.ts';
import { readAccepted } from '../../api/inventory/contract/report.ts';
import { type ReconcileRequest, reconcilePath } from '../../api/inventory/contract/request.ts';
import type { FieldError } from '../../api/schema/read.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { ApiError } from '../../kube/errors.ts';
import { CallError, type JsonAnswer, JsonCaller, type JsonRequest } from '../../kube/json-call.ts';
import { retryAfterMs } from '../../kube/status-error.ts';
import type { CallFailureCode, ComponentClient, Reply, TokenIssuer } from '../ports.ts';
import type { Registration } from '../registration.ts';

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

/** Where a component is called; an error for what may not be called. A component in this process has no URL. */
function endpointUrl(
  { endpoint }: Registration,
  allowLoopbackHttp: boolean,
): { readonly url: URL } | { readonly error: string } {
  const { service, url } = endpoint;
  if (service)
    return { url: new URL(`https://${service.name}.${service.namespace}.svc:${service.port}${reconcilePath}`) };
  const base = url === undefined ? undefined : url.replace(/\/+$/, '');
  if (base === undefined || !URL.canParse(`${base}${reconcilePath}`)) return { error: 'the endpoint is no URL' };
  const parsed = new URL(`${base}${reconcilePath}`);
  if (parsed.username || parsed.password || parsed.search || parsed.hash) {
    return { error: 'the URL of the endpoint may hold no user, query or fragment' };
  }
  if (parsed.protocol === 'https:') return { url: parsed };
  if (parsed.protocol !== 'http:' || !loopback.test(parsed.hostname)) {
    return { error: 'the endpoint must be https; plain http is for loopback addresses alone' };
  }
  return allowLoopbackHttp
    ? { url: parsed }
    : { error: 'plain http needs a server that allows it: start it with --allow-loopback-http' };
}

/** Whether a URL of callbacks may be served without TLS. */
export const isLoopbackHttp = (text: string): boolean =>
  URL.canParse(text) && new URL(text).protocol === 'http:' && loopback.test(new URL(text).hostname);

interface HttpClientDeps {
  readonly tokens: Pick<TokenIssuer, 'forCall'>;
  readonly clock: Clock;
  readonly allowLoopbackHttp: boolean;
}

/** The connections to one component, for as long as it is registered that way. */
interface Line {
  readonly registered: string;
  readonly url: URL;
  readonly caller: JsonCaller;
  /** For a connection of its own. */
  readonly freshCaller: () => JsonCaller;
}

/** Largest answer that is read, bytes. */
const maxAnswerBytes = 131_072;

/** Calls components by HTTPS, each pinned to the authority of its registration. */
export class HttpClient implements ComponentClient {
  readonly #deps: HttpClientDeps;
  readonly #lines = new Map<string, Line>();

  constructor(deps: HttpClientDeps) {
    this.#deps = deps;
  }

  async invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply> {
    const { tokens, clock } = this.#deps;
    const { name, timeoutMs } = registration;
    const where = endpointUrl(registration, this.#deps.allowLoopbackHttp);
    if ('error' in where) return { kind: 'notAccepted', code: 'Unreachable', message: where.error };
    let token: string;
    try {
      token = await tokens.forCall(name, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `no token for calling the component: ${describe(error)}`;
      const delayMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      return { kind: 'notCalled', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
    }
    const headers = { authorization: `Bearer ${token}` };
    // After the token: meanwhile another call may have replaced the connections of a changed registration.
    const line = this.#lineTo(registration, where.url);
    try {
      return readAnswer(await this.#exchange(line, { headers, body: request, timeoutMs, signal }), request, clock);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      return replyTo(error);
    }
  }

  close(): void {
    for (const { caller } of this.#lines.values()) caller.close();
    this.#lines.clear();
  }

  /**
   * A connection that was kept and that the component closed just then is replaced by a new one: the run is the same, and components take a
   * run twice.
   */
  async #exchange(
    { url, caller, freshCaller }: Line,
    call: Pick<JsonRequest, 'headers' | 'body' | 'signal'> & { readonly timeoutMs: number },
  ): Promise<JsonAnswer> {
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    try {
      return await caller.call({ method: 'POST', url, maxAnswerBytes, ...call });
    } catch (error) {
      if (!(error instanceof CallError) || error.failure !== 'stale') throw error;
      // Others that were kept may be as stale.
      const fresh = freshCaller();
      const timeoutMs = Math.max(0, call.timeoutMs - (clock.monotonic() - startedAt));
      return await fresh.call({ method: 'POST', url, maxAnswerBytes, ...call, timeoutMs }).finally(() => fresh.close());
    }
  }

  #lineTo({ name, endpoint, caBundle, maxConcurrent, timeoutMs }: Registration, url: URL): Line {
    const { clock } = this.#deps;
    const registered = JSON.stringify([endpoint, caBundle, maxConcurrent, timeoutMs]);
    const known = this.#lines.get(name);
    if (known?.registered === registered) return known;
    // A connection that is never established must not outlive the call that opened it: it would take the place of another.
    const connectTimeoutMs = timeoutMs;
    // An authority that is empty trusts nobody, where an absent one would trust everybody's.
    const open = (connections: number): JsonCaller =>
      new JsonCaller({ ca: caBundle ?? [] }, clock, { connections, connectTimeoutMs });
    const line = { registered, url, caller: open(maxConcurrent), freshCaller: () => open(1) };
    this.#lines.set(name, line);
    // What still runs on the old ones ends by itself.
    known?.caller.retire();
    return line;
  }
}

function replyTo({ failure, timedOut, why }: CallError): Reply {
  if (failure === 'unsent') return { kind: 'notAccepted', code: 'Unreachable', message: why };
  if (timedOut) return { kind: 'broken', code: 'Timeout', message: why };
  if (failure === 'tooLarge') return { kind: 'broken', code: 'TooLarge', message: why };
  if (failure === 'malformed') return { kind: 'broken', code: 'NotJson', message: `not HTTP: ${why}` };
  return { kind: 'broken', code: 'Cut', message: why };
}

function readAnswer({ status, headers, body }: JsonAnswer, request: ReconcileRequest, clock: Clock): Reply {
  if (status === 429 || status === 503) {
    const delayMs = retryAfterMs(headers['retry-after'], clock.now());
    const message = `the component answered ${status}`;
    return { kind: 'notAccepted', code: 'Busy', message, ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }) };
  }
  if (status === 202) return readLease(body);
  if (status === 200) return readResult(body, request);
  const code: CallFailureCode = status === 400 || status === 401 || status === 403 ? 'Refused' : 'UnexpectedStatus';
  return { kind: 'broken', code, message: `the component answered ${status}${said(body)}` };
}

function readResult(body: Buffer, { run, operation }: ReconcileRequest): Reply {
  const json = parsed(body);
  if ('error' in json) return { kind: 'broken', code: 'NotJson', message: json.error };
  const read = readOutcome(json.value, { id: run.id, operation });
  if (read.ok) return { kind: 'outcome', outcome: read.value };
  const isOther = read.errors.some(({ field }) => field === 'run');
  return { kind: 'broken', code: isOther ? 'WrongRun' : 'InvalidOutcome', message: listed(read.errors) };
}

function readLease(body: Buffer): Reply {
  const json = body.length === 0 ? { value: {} } : parsed(body);
  if ('error' in json) return { kind: 'broken', code: 'NotJson', message: json.error };
  const read = readAccepted(json.value);
  if (!read.ok) return { kind: 'broken', code: 'InvalidOutcome', message: listed(read.errors) };
  const { leaseSeconds } = read.value;
  return { kind: 'accepted', leaseMs: leaseSeconds === undefined ? undefined : leaseSeconds * 1000 };
}

function parsed(body: Buffer): { readonly value: unknown } | { readonly error: string } {
  try {
    return { value: parseJson(body) };
  } catch (error) {
    return { error: describe(error) };
  }
}

const listed = (errors: readonly FieldError[]): string =>
  errors.map(({ field, message }) => (field ? `${field} ${message}` : message)).join('; ');

/** Of a text that anybody may have written: short, and on one line. */
function said(body: Buffer): string {
  const text = body.subarray(0, 256).toString('utf8').replace(/\s+/g, ' ').trim();
  return text === '' ? '' : `: ${text}`;
}
