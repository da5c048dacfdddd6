import type { Agent } from 'undici';
import type { Clock } from '../kit/clock.ts';
import type { ClusterTls } from './credentials.ts';
import { openAgent } from './json-call.ts';

/**
 * Which connections a call uses. `urgent`: for the calls of `Client.urgent`. `slow`: for calls that the API server delays. `quick`: for all
 * others.
 */
export type PoolName = 'urgent' | 'quick' | 'slow';

/**
 * Number of connections to create and update RBAC objects. The API server delays these writes by 50 to 200 ms, because it waits for a
 * current list of permissions before its escalation check. Concurrent writes cost the API server nothing; fewer connections would slow a
 * burst down.
 */
const SLOW_CONNECTIONS = 32;
/** Number of connections reserved for urgent calls, however many other calls hang. */
const URGENT_CONNECTIONS = 10;

/**
 * The connections of one cluster with one set of certificates. Watches and slow calls have separate connections, so that they do not use up
 * the connections of other calls. Urgent calls have reserved connections.
 */
export class Pools {
  readonly tls: ClusterTls;
  readonly #agents: Readonly<Record<PoolName, Agent>>;
  readonly #watches: Agent;
  #running = 0;
  #onIdle = (): void => {};

  constructor(tls: ClusterTls, connections: number) {
    this.tls = tls;
    this.#agents = {
      urgent: openAgent(tls, { connections: URGENT_CONNECTIONS }),
      quick: openAgent(tls, { connections }),
      slow: openAgent(tls, { connections: SLOW_CONNECTIONS }),
    };
    this.#watches = openAgent(tls);
  }

  /** Runs one call to its end, including the body. */
  async call<T>(pool: PoolName, work: (agent: Agent) => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work(this.#agents[pool]);
    } finally {
      if (--this.#running === 0) this.#onIdle();
    }
  }

  /** The connections of watches: one for each watch. */
  get watches(): Agent {
    return this.#watches;
  }

  /** Ends watches at once, waits up to `graceMs` for calls, then closes every connection, which aborts the remaining calls. */
  async retire(clock: Clock, graceMs: number): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      const cancelTimeout = clock.schedule(graceMs, resolve);
      this.#onIdle = () => {
        cancelTimeout();
        resolve();
      };
      if (this.#running === 0) this.#onIdle();
    });
    await this.#watches.destroy();
    await idle;
    await Promise.all(Object.values(this.#agents).map((agent) => agent.destroy()));
  }
}

/** Whether connections with `a` can also serve calls with `b`. */
export function sameTls(a: ClusterTls, b: ClusterTls): boolean {
  return (
    a === b ||
    (a.servername === b.servername &&
      a.proxy === b.proxy &&
      a.rejectUnauthorized === b.rejectUnauthorized &&
      sameBytes(a.ca, b.ca) &&
      sameBytes(a.cert, b.cert) &&
      sameBytes(a.key, b.key))
  );
}

function sameBytes(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && Buffer.from(a).equals(Buffer.from(b)));
}
