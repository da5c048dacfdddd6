import { Agent, buildConnector } from 'undici';
import type { Clock } from '../kit/clock.ts';
import type { ClusterTls } from './credentials.ts';

const KEEP_ALIVE_MS = 30_000;
const PROBE_AFTER_MS = 30_000;
/** No list page comes near; an endless answer of a broken or hostile server ends here. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/** Errors that a connection attempt ended with: the request behind it never left. */
const connectErrors = new WeakSet<object>();

/** True when `error` is from connecting (refused, unknown host, TLS refused, connect timeout): nothing of the request was sent. */
export function isConnectError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && connectErrors.has(error);
}

/** The connections of one cluster under one set of certificates. Watches have their own: they must not use up those of the calls. */
export class Pools {
  readonly tls: ClusterTls;
  readonly #calls: Agent;
  readonly #watches: Agent;
  #running = 0;
  #onIdle = (): void => {};

  constructor(tls: ClusterTls, connections: number) {
    const connect = taggingConnector(tls);
    // Time limits are the caller's, by its Clock.
    const common = { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS };
    this.tls = tls;
    this.#calls = new Agent({ ...common, connections, maxResponseSize: MAX_RESPONSE_BYTES });
    this.#watches = new Agent(common);
  }

  /** Runs one call to its end, body included. */
  async call<T>(work: (agent: Agent) => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work(this.#calls);
    } finally {
      if (--this.#running === 0) this.#onIdle();
    }
  }

  get watches(): Agent {
    return this.#watches;
  }

  /** Ends watches at once and calls when they are done, or after `graceMs`; then closes every connection. */
  async retire(clock: Clock, graceMs: number): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      const cut = clock.schedule(graceMs, resolve);
      this.#onIdle = () => {
        cut();
        resolve();
      };
      if (this.#running === 0) this.#onIdle();
    });
    await this.#watches.destroy();
    await idle;
    await this.#calls.destroy();
  }
}

export function sameTls(a: ClusterTls, b: ClusterTls): boolean {
  return (
    a === b ||
    (a.servername === b.servername &&
      a.rejectUnauthorized === b.rejectUnauthorized &&
      sameBytes(a.ca, b.ca) &&
      sameBytes(a.cert, b.cert) &&
      sameBytes(a.key, b.key))
  );
}

function sameBytes(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && Buffer.from(a).equals(Buffer.from(b)));
}

function taggingConnector(tls: ClusterTls): buildConnector.connector {
  const base = buildConnector({ ...tls, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS });
  return (options, callback) =>
    base(options, (...outcome) => {
      if (outcome[0]) connectErrors.add(outcome[0]);
      callback(...outcome);
    });
}
