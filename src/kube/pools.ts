import { createSecureContext } from 'node:tls';
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

export type Lane = 'quick' | 'slow';

/**
 * Writes of Roles and RoleBindings, which the apiserver holds for 50 to 200 ms: it checks what they would give away against a list
 * that it first waits to be current. More of them at a time cost it nothing, fewer would make a burst wait for each other.
 */
const SLOW_CONNECTIONS = 32;

/**
 * The connections of one cluster under one set of certificates. Watches and calls known to be slow have their own: they must not use
 * up those of the other calls.
 */
export class Pools {
  readonly tls: ClusterTls;
  readonly #lanes: Readonly<Record<Lane, Agent>>;
  readonly #watches: Agent;
  #running = 0;
  #onIdle = (): void => {};

  constructor(tls: ClusterTls, connections: number) {
    const connect = taggingConnector(tls);
    // Time limits are the caller's, by its Clock.
    const common = { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS };
    this.tls = tls;
    const calls = { ...common, maxResponseSize: MAX_RESPONSE_BYTES };
    this.#lanes = {
      quick: new Agent({ ...calls, connections }),
      slow: new Agent({ ...calls, connections: SLOW_CONNECTIONS }),
    };
    this.#watches = new Agent(common);
  }

  /** Runs one call to its end, body included. */
  async call<T>(lane: Lane, work: (agent: Agent) => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work(this.#lanes[lane]);
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
    await Promise.all([this.#lanes.quick.destroy(), this.#lanes.slow.destroy()]);
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
  // Parsed once: otherwise every connection pays for reading keys and certificates again.
  const secureContext = createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  const base = buildConnector({ ...tls, secureContext, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS });
  return (options, callback) =>
    base(options, (...outcome) => {
      if (outcome[0]) connectErrors.add(outcome[0]);
      callback(...outcome);
    });
}
