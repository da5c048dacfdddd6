import type { Controller } from '../engine/controller.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { ConsumerStores } from './stores/consumer-stores.ts';

export interface BindingDeps {
  readonly consumer: Cluster;
  /** Of the consumer. Writes only while this replica leads; in a dry run it changes nothing. */
  readonly client: Client;
  readonly stores: ConsumerStores;
  /** The namespaces with the server's keys and `kube-bind`; claims share nothing of them. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** In the consumer: the server may not write Events in a provider. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** They run while this replica holds the Lease of the binding feature. */
  readonly runningControllers: RunningControllers;
}

export interface RunningControllers {
  /** Once this replica leads. Throws CodedError `AlreadyAdded`. */
  add(controller: Controller): void;
  /** Waits for its last reconcile, so do not await it inside that one. */
  remove(controller: Controller): Promise<void>;
}
