import type { Agent } from 'undici';
import type { Clock } from '../kit/clock.ts';
import type { ClusterTls } from './credentials.ts';
import { openAgent } from './json-call.ts';

/** `urgent`: `Client.urgent`. `slow`: calls that the API server delays. */
export type PoolName = 'urgent' | 'quick' | 'slow';

/** The API server delays a write of RBAC objects by 50 to 200 ms; concurrent ones cost nothing. */
const SLOW_CONNECTIONS = 32;
/** Reserved, however many other calls hang. */
const URGENT_CONNECTIONS = 10;

/**
 * The connections of one cluster with one set of certificates. Watches, slow, and urgent calls have
 * their own, so that they never use up the others'.
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

  /** Runs a call to its end, including the body. */
  async call<T>(pool: PoolName, work: (agent: Agent) => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work(this.#agents[pool]);
    } finally {
      if (--this.#running === 0) this.#onIdle();
    }
  }

  /** One connection for each watch. */
  get watches(): Agent {
    return this.#watches;
  }

  /** Ends watches at once, and calls after at most `graceMs`. */
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

/** Connections with `a` can also serve calls with `b`. */
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
