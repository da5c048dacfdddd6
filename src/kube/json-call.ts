import { setMaxListeners } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createSecureContext } from 'node:tls';
import { Agent, buildConnector, Client, type Dispatcher, errors, Pool } from 'undici';
import type { Cancel, Clock } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { unlessAborted } from '../kit/promises.ts';
import type { ClusterTls } from './credentials.ts';
import { TransportError } from './errors.ts';
import { throughProxy } from './proxy.ts';

/** One signal for the caller's signal and a time limit. Call `release` at the end. */
export class CallLimit {
  readonly #abort = new AbortController();
  readonly #source: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#abort.abort(this.#source?.reason);
  /** The caller's signal still aborts `signal`. */
  readonly cancelTimeout: Cancel;
  readonly timeoutMs: number;
  /** The time limit, not the caller's signal, aborted `signal`. */
  timedOut = false;

  constructor(clock: Clock, source: AbortSignal | undefined, timeoutMs: number) {
    this.#source = source;
    this.timeoutMs = timeoutMs;
    if (source?.aborted) this.#onAbort();
    if (source) {
      // One signal may serve any number of calls.
      setMaxListeners(0, source);
      source.addEventListener('abort', this.#onAbort, { once: true });
    }
    this.cancelTimeout = clock.schedule(timeoutMs, () => {
      this.timedOut = true;
      this.#abort.abort(new CodedError('Timeout', `no answer within ${timeoutMs} ms`));
    });
  }

  /** Aborts at the time limit, or with the caller's signal. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Rejects with the reason of `signal` if that aborts first. */
  race<T>(work: Promise<T>): Promise<T> {
    return unlessAborted(work, this.signal);
  }

  release(): void {
    this.cancelTimeout();
    this.#source?.removeEventListener('abort', this.#onAbort);
  }
}

/**
 * `unsent`: no byte was sent. `stale`: a reused connection closed before the answer. `malformed`:
 * not HTTP. `cut`: any other end, such as the time limit.
 */
export type Failure = 'unsent' | 'stale' | 'cut' | 'tooLarge' | 'malformed';

export class CallError extends TransportError {
  constructor(
    /** Such as `GET /version`. */
    what: string,
    why: string,
    cause: unknown,
    readonly failure: Failure,
    /** The time limit ended the call. */
    readonly timedOut: boolean,
  ) {
    super(`${what}: ${why}`, cause, failure === 'unsent' && !timedOut, why);
  }
}

export interface JsonCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly origin: string;
  /** Escaped, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string | undefined;
  readonly maxAnswerBytes: number;
}

export interface JsonAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The whole answer. Rejects with CallError, or the reason of the signal behind `limit`. */
export function jsonCall(agent: Agent, call: JsonCall, limit: CallLimit): Promise<JsonAnswer> {
  const { method, origin, path, contentType = 'application/json', maxAnswerBytes } = call;
  const body = call.body === undefined ? null : JSON.stringify(call.body);
  const type = body === null ? {} : { 'content-type': contentType };
  return new Promise((resolve, reject) => {
    let connection: Connection | undefined;
    let controller: Dispatcher.DispatchController | undefined;
    let isReused = false;
    let head: Pick<JsonAnswer, 'status' | 'headers'> | undefined;
    const chunks: Buffer[] = [];
    let length = 0;
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
      limit.signal.removeEventListener('abort', onAbort);
    };
    const fail = (error: Error): void => {
      if (isSettled) return;
      end();
      controller?.abort(error);
      if (limit.signal.aborted && !limit.timedOut) {
        reject(limit.signal.reason);
        return;
      }
      const failure = controller ? failureOf(error, isReused && !head) : 'unsent';
      const timeoutText = `no ${controller ? 'answer' : 'connection'} within ${limit.timeoutMs} ms`;
      reject(
        new CallError(
          `${method} ${path}`,
          limit.timedOut ? timeoutText : describe(error),
          error,
          failure,
          limit.timedOut,
        ),
      );
    };
    const onAbort = (): void => fail(new Error('the call was ended'));
    limit.signal.addEventListener('abort', onAbort, { once: true });
    if (limit.signal.aborted) return onAbort();
    const options: TrackedOptions = {
      method,
      origin,
      path,
      headers: { accept: 'application/json', ...type, ...call.headers },
      body,
      // Otherwise, undici closes the connection after a DELETE with a body.
      reset: false,
      onQueued: (queuedAt) => {
        connection = queuedAt;
      },
    };
    agent.dispatch(options, {
      onRequestStart: (started) => {
        // Undici starts a call even if it was aborted while it waited for a connection.
        if (isSettled) return started.abort(new Error('the call was ended'));
        controller = started;
        isReused = connection?.hasCarried ?? false;
        if (connection) connection.hasCarried = true;
      },
      onResponseStart: (_, status, headers) => {
        if (status >= 200) head = { status, headers };
      },
      onResponseData: (_, chunk) => {
        length += chunk.length;
        if (length > maxAnswerBytes) fail(new TooLarge(`the answer is larger than ${maxAnswerBytes} bytes`));
        else chunks.push(chunk);
      },
      onResponseEnd: () => {
        if (isSettled || !head) return;
        end();
        resolve({ ...head, body: Buffer.concat(chunks, length) });
      },
      onResponseError: (_, error) => fail(error),
    });
  });
}

class TooLarge extends Error {}

function failureOf(error: Error, isUnansweredReuse: boolean): Failure {
  if (error instanceof TooLarge || error instanceof errors.HeadersOverflowError) return 'tooLarge';
  if (error instanceof errors.HTTPParserError) return 'malformed';
  const code = 'code' in error ? error.code : undefined;
  const isClosed = error instanceof errors.SocketError || code === 'ECONNRESET' || code === 'EPIPE';
  return isClosed && isUnansweredReuse ? 'stale' : 'cut';
}

interface TrackedOptions extends Dispatcher.DispatchOptions {
  /** Before the call starts, with the connection that will carry it. */
  readonly onQueued?: (connection: Connection) => void;
}

/** Records whether it has carried a call since it was opened. */
class Connection extends Client {
  hasCarried = false;

  constructor(...[origin, options]: ConstructorParameters<typeof Client>) {
    super(origin, options);
    this.on('connect', () => {
      this.hasCarried = false;
    });
  }

  override dispatch(options: TrackedOptions, handler: Dispatcher.DispatchHandler): boolean {
    options.onQueued?.(this);
    return super.dispatch(options, handler);
  }
}

export interface ConnectionOptions {
  /** To one origin at a time. Default: no limit. */
  readonly connections?: number;
  /** A call that times out earlier leaves the connection opening. Default 10 000. */
  readonly connectTimeoutMs?: number;
}

const KEEP_ALIVE_MS = 30_000;
/** Probes then follow each second, ten times, so a dead connection breaks after about 18 s. */
const PROBE_AFTER_MS = 8_000;

/** Without `ca`, Node trusts the public CAs; with an empty list, no server. */
type Tls = Omit<ClusterTls, 'ca'> & { readonly ca?: ClusterTls['ca'] | [] };

/** `CallLimit`, not the agent, limits calls. Throws if a certificate or key cannot be read. */
export function openAgent(tls: Tls, { connections, connectTimeoutMs = 10_000 }: ConnectionOptions = {}): Agent {
  // Once, instead of once for each connection.
  const secureContext = createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  const { proxy, ...direct } = tls;
  const connect = buildConnector({
    ...direct,
    secureContext,
    allowH2: false,
    timeout: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  });
  return new Agent({
    connect: proxy === undefined ? connect : throughProxy(proxy, connect, connectTimeoutMs),
    // The numbers of connections and `Failure` hold for one call on each connection.
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    ...(connections === undefined ? {} : { connections }),
    factory: (origin, options) =>
      new Pool(origin, { ...options, factory: (to, rest) => new Connection(to.toString(), rest as Client.Options) }),
  });
}

export interface JsonRequest extends Omit<JsonCall, 'origin' | 'path' | 'maxAnswerBytes'> {
  readonly url: URL;
  /** Default 10 000. */
  readonly timeoutMs?: number;
  /** Default 3 MiB, twice the largest object that the API server stores. */
  readonly maxAnswerBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/** For calls that each have their own URL and headers, such as those to components. */
export class JsonCaller {
  readonly #agent: Agent;
  readonly #clock: Clock;

  constructor(tls: Tls, clock: Clock, options?: ConnectionOptions) {
    this.#agent = openAgent(tls, options);
    this.#clock = clock;
  }

  /** The whole answer. Rejects with CallError, or the reason of `request.signal`. */
  async call(request: JsonRequest): Promise<JsonAnswer> {
    const { url, timeoutMs = 10_000, maxAnswerBytes = 3 * 1024 * 1024, signal, ...rest } = request;
    const limit = new CallLimit(this.#clock, signal, timeoutMs);
    const call = { ...rest, origin: url.origin, path: url.pathname + url.search, maxAnswerBytes };
    try {
      return await jsonCall(this.#agent, call, limit);
    } finally {
      limit.release();
    }
  }

  /** Calls in flight continue. */
  retire(): void {
    void this.#agent.close();
  }

  /** Aborts calls in flight. */
  close(): void {
    void this.#agent.destroy();
  }
}
