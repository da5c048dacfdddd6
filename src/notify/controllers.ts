import type { Runnable } from '../engine/supervisor.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Send } from './sink.ts';
import type { NotifyStores } from './stores.ts';

export interface NotifyDeps {
  readonly stores: NotifyStores;
  /** Writes only while this process leads. */
  readonly client: Client;
  /** Of the release: the outbox is stored there. */
  readonly namespace: string;
  /** Identifies the cluster. */
  readonly source: string;
  readonly send: Send;
  /** The mail address of a user, if it is known. */
  readonly addressOf: (username: string) => string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** In start order, behind the Lease. Call it in every replica: each remembers what is deleted. */
export function notifyControllers(_deps: NotifyDeps): readonly Runnable[] {
  return [];
}
