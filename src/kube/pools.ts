import type { Agent } from 'undici';
import type { Clock } from '../kit/clock.ts';
import type { ClusterTls } from './credentials.ts';
import { openAgent } from './json-call.ts';

export type Lane = 'urgent' | 'quick' | 'slow';

/**
 * Writes of Roles and RoleBindings, which the apiserver holds for 50 to 200 ms: it checks what they would give away against a list
 * that it first waits to be current. More of them at a time cost it nothing, fewer would make a burst wait for each other.
 */
const SLOW_CONNECTIONS = 32;
/** For calls that end access or keep a Lease: nobody else's call may take one, however many others hang. */
const URGENT_CONNECTIONS = 10;

/**
 * The connections of one cluster under one set of certificates. Watches and calls known to be slow have their own, so that they do not
 * use up those of the other calls; and so do urgent calls, so that no others use up theirs.
 */
export class Pools {
  readonly tls: ClusterTls;
  readonly #lanes: Readonly<Record<Lane, Agent>>;
  readonly #watches: Agent;
  #running = 0;
  #onIdle = (): void => {};

  constructor(tls: ClusterTls, connections: number) {
    this.tls = tls;
    this.#lanes = {
      urgent: openAgent(tls, { connections: URGENT_CONNECTIONS }),
      quick: openAgent(tls, { connections }),
      slow: openAgent(tls, { connections: SLOW_CONNECTIONS }),
    };
    this.#watches = openAgent(tls);
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
    await Promise.all(Object.values(this.#lanes).map((agent) => agent.destroy()));
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
