import { type Clock, parseHttpDate, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import type { ConnectionAuth, Credentials } from './credentials.ts';
import { ApiError, CredentialError, TransportError } from './errors.ts';
import { CallError, CallLimit, jsonCall } from './json-call.ts';
import { type PoolName, Pools, sameTls } from './pools.ts';
import { retryDelayMs } from './retry.ts';
import { successText, toApiError } from './status-error.ts';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** One call of an API server, with its retries. */
export interface CallSpec {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below the server URL, escaped, with a leading slash. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
  /** For the whole call, with its retries. Default: `TransportOptions.timeoutMs`. */
  readonly timeoutMs?: number;
  /** `write` (default, but for GET): only if the server did not act. `never`: the caller does. */
  readonly retry?: 'idempotent' | 'write' | 'never';
  /** Default `quick`. */
  readonly pool?: PoolName | undefined;
  /** An error ends the call. */
  readonly beforeTry?: (() => void) | undefined;
}

/** A GET whose answer is read while it arrives, such as a watch. */
export interface StreamSpec {
  readonly path: string;
  readonly query?: Query;
  readonly signal: AbortSignal;
  /** Until the head of the answer must arrive; the body has no limit. */
  readonly headTimeoutMs: number;
}

export interface TransportOptions {
  readonly clock: Clock;
  /** Uniform in [0, 1), for retries. Default Math.random. */
  readonly random?: () => number;
  /** For quick calls; those for slow and urgent calls and watches come on top. Default 10. */
  readonly connections?: number;
  /** For calls without their own. Default 30 000. */
  readonly timeoutMs?: number;
  /** The server's wall clock (epoch ms, whole seconds), from each answer but those to watches. */
  readonly onServerTime?: (serverMs: number) => void;
  /** The text of each `Warning: 299` header, but for answers to watches. */
  readonly onWarning?: (text: string) => void;
}

const CALL_TIMEOUT_MS = 30_000;
/** Ends an endless answer of a broken or untrusted server; a usual page is much smaller. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** How long certificates and headers serve before the credentials are read again. */
const AUTH_CACHE_MS = 10_000;
/** For calls in flight after a change of credentials or `close`. Watches end at once. */
const RETIRE_MS = 4_000;
const USER_AGENT = 'drawbridge';

/**
 * HTTP to one cluster. Rejects with ApiError, TransportError, or the reason of the caller's signal.
 * New certificates and tokens count within 10 s, or in the next call after a 401.
 */
export class Transport {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #connections: number;
  readonly #timeoutMs: number;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #onServerTime: (serverMs: number) => void;
  readonly #onWarning: (text: string) => void;
  /** Resolve when the connections of earlier credentials are closed. */
  readonly #retiring = new Set<Promise<void>>();
  #credentials: Credentials;
  /** Opened by the first call, and after new certificates or credentials. */
  #pools: Pools | undefined;
  /** Not set if the next call must read the credentials. */
  #auth: { readonly value: Promise<ConnectionAuth>; readonly sinceMs: number } | undefined;
  #closed = false;

  constructor(credentials: Credentials, options: TransportOptions) {
    const url = new URL(credentials.server);
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#credentials = credentials;
    this.#clock = options.clock;
    this.#random = options.random ?? Math.random;
    this.#connections = options.connections ?? 10;
    this.#timeoutMs = options.timeoutMs ?? CALL_TIMEOUT_MS;
    this.#onServerTime = options.onServerTime ?? (() => {});
    this.#onWarning = options.onWarning ?? (() => {});
  }

  /** The parsed JSON of a 2xx answer, if it had a body. */
  async request(spec: CallSpec): Promise<unknown> {
    const retry = spec.retry ?? (spec.method === 'GET' ? 'idempotent' : 'write');
    const deadlineMs = this.#clock.monotonic() + (spec.timeoutMs ?? this.#timeoutMs);
    for (let attempt = 0; ; attempt++) {
      spec.beforeTry?.();
      try {
        return await this.#call(spec, deadlineMs - this.#clock.monotonic());
      } catch (error) {
        if (retry === 'never' || spec.signal?.aborted || this.#closed) throw error;
        const idempotent = retry === 'idempotent';
        const delayMs = retryDelayMs({ error, idempotent, attempt, random: this.#random });
        if (delayMs === undefined || this.#clock.monotonic() + delayMs >= deadlineMs) throw error;
        await sleep(this.#clock, delayMs, spec.signal);
      }
    }
  }

  /** The body of a 200 answer. Rejects with ApiError on any other. Never retries. */
  async stream(spec: StreamSpec): Promise<AsyncIterable<Uint8Array>> {
    const limit = this.#limit(spec.signal, spec.headTimeoutMs);
    try {
      const { pools, headers } = await this.#poolsAndHeaders(limit);
      const answer = await pools.watches.request({
        origin: this.#origin,
        path: this.#url(spec.path, spec.query),
        method: 'GET',
        headers: { ...headers, accept: 'application/json' },
        signal: limit.signal,
      });
      if (answer.statusCode === 200) {
        limit.cancelTimeout();
        return this.#chunks(answer.body, spec, limit);
      }
      throw toApiError(answer.statusCode, answer.headers['retry-after'], await answer.body.text());
    } catch (error) {
      limit.release();
      throw this.#rejection(error, spec.path, spec.signal, limit);
    }
  }

  /** Ends watches at once, and calls after 4 s. Throws CodedError `ServerChanged`. */
  update(credentials: Credentials): void {
    if (credentials.server !== this.#credentials.server) {
      throw new CodedError(
        'ServerChanged',
        `new credentials name ${credentials.server}, this connection is for ${this.#credentials.server}; open another connection`,
      );
    }
    this.#credentials = credentials;
    this.#auth = undefined;
    this.#retire();
  }

  /** Ends watches at once, and calls in flight after 4 s. Rejects later calls. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#retire();
    await Promise.all(this.#retiring);
  }

  async #call(spec: CallSpec, timeoutMs: number): Promise<unknown> {
    const limit = this.#limit(spec.signal, timeoutMs);
    try {
      const { pools, headers } = await this.#poolsAndHeaders(limit);
      const { method, path, query, body, contentType, pool = 'quick' } = spec;
      const call = {
        method,
        origin: this.#origin,
        path: this.#url(path, query),
        headers,
        body,
        contentType,
        maxAnswerBytes: MAX_ANSWER_BYTES,
      };
      const answer = await pools.call(pool, (agent) => jsonCall(agent, call, limit));
      this.#reportServerTime(answer.headers['date']);
      for (const warning of warningsIn(answer.headers['warning'])) this.#onWarning(warning);
      const text = successText(answer);
      return text === '' ? undefined : JSON.parse(text);
    } catch (error) {
      throw this.#rejection(error, `${spec.method} ${spec.path}`, spec.signal, limit);
    } finally {
      limit.release();
    }
  }

  async *#chunks(
    body: AsyncIterable<Uint8Array>,
    { path, signal }: StreamSpec,
    limit: CallLimit,
  ): AsyncIterable<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw this.#rejection(error, path, signal, limit);
    } finally {
      limit.release();
    }
  }

  #reportServerTime(date: string | string[] | undefined): void {
    const serverMs = typeof date === 'string' ? parseHttpDate(date) : undefined;
    if (serverMs !== undefined) this.#onServerTime(serverMs);
  }

  #rejection(error: unknown, what: string, signal: AbortSignal | undefined, limit: CallLimit): unknown {
    // A token may have been replaced early, so the next call reads the credentials again.
    if (error instanceof ApiError && error.code === 401) this.#auth = undefined;
    const isTyped = error instanceof ApiError || error instanceof TransportError;
    if (isTyped && !(error instanceof CallError)) return error;
    if (!limit.timedOut && signal?.aborted) return signal.reason;
    const [cause, notSent] = error instanceof CallError ? [error.cause, error.notSent] : [error, false];
    const why = limit.timedOut ? `no answer from ${this.#origin} in time` : describe(cause);
    return new TransportError(`${what}: ${why}`, cause, notSent, why);
  }

  /** New certificates retire the old connections. */
  async #poolsAndHeaders(limit: CallLimit): Promise<{ pools: Pools; headers: Record<string, string | string[]> }> {
    let credentials: Credentials;
    let connectionAuth: ConnectionAuth;
    do {
      credentials = this.#credentials;
      connectionAuth = await limit.race(this.#currentAuth());
      // The transport may have been closed or updated in the meantime.
      if (this.#closed) throw new TransportError(`the connection to ${this.#origin} is closed`, undefined, true);
    } while (credentials !== this.#credentials);
    const { tls, headers } = connectionAuth;
    if (this.#pools && !sameTls(this.#pools.tls, tls)) this.#retire();
    this.#pools ??= new Pools(tls, this.#connections);
    return { pools: this.#pools, headers: { 'user-agent': USER_AGENT, ...headers } };
  }

  #currentAuth(): Promise<ConnectionAuth> {
    const nowMs = this.#clock.monotonic();
    if (this.#auth && nowMs - this.#auth.sinceMs < AUTH_CACHE_MS) return this.#auth.value;
    const value = this.#credentials.connectionAuth().catch((error: unknown) => {
      this.#auth = undefined;
      throw new CredentialError(`no credentials for ${this.#origin}: ${describe(error)}`, error, true);
    });
    // If all callers were aborted, an unhandled rejection would end the process.
    value.catch(() => undefined);
    this.#auth = { value, sinceMs: nowMs };
    return value;
  }

  #retire(): void {
    const pools = this.#pools;
    if (!pools) return;
    this.#pools = undefined;
    const retired = pools
      .retire(this.#clock, RETIRE_MS)
      .catch(() => undefined)
      .finally(() => this.#retiring.delete(retired));
    this.#retiring.add(retired);
  }

  #url(path: string, query: Query = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const text = search.toString();
    return `${this.#prefix}${path}${text ? `?${text}` : ''}`;
  }

  #limit(signal: AbortSignal | undefined, timeoutMs: number): CallLimit {
    return new CallLimit(this.#clock, signal, timeoutMs);
  }
}

/** `299 - "text"` in UTF-8, which the HTTP client reads as Latin-1. */
function warningsIn(header: string | string[] | undefined): string[] {
  const lines = Array.isArray(header) ? header.join(', ') : (header ?? '');
  const utf8 = Buffer.from(lines, 'latin1').toString('utf8');
  return [...utf8.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'));
}
