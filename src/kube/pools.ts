import { Agent, buildConnector } from 'undici';
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
export interface Pools {
  readonly tls: ClusterTls;
  readonly calls: Agent;
  readonly watches: Agent;
}

export function openPools(tls: ClusterTls, connections: number): Pools {
  const connect = taggingConnector(tls);
  // Time limits are the caller's, by its Clock.
  const common = { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS };
  return {
    tls,
    calls: new Agent({ ...common, connections, maxResponseSize: MAX_RESPONSE_BYTES }),
    watches: new Agent(common),
  };
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
