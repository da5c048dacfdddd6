import type { Controller } from '../engine/controller.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { ConsumerStores } from './stores/consumer-stores.ts';

/** Dependencies of every part of the konnector. */
export interface BindingDeps {
  /** The consumer cluster, for watches. */
  readonly consumer: Cluster;
  /** Client for writes to the consumer: only while this replica is the leader, and never in a dry run. */
  readonly client: Client;
  readonly stores: ConsumerStores;
  /** Namespaces of the consumer that hold the server's keys and the kubeconfigs of providers. Their objects are never shared. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** Recorder of Events in the consumer. The server has no permission to write Events in a provider. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Adds and removes controllers at run time, under the same Lease as the others. */
  readonly running: RunningControllers;
}

export interface RunningControllers {
  add(controller: Controller): void;
  /** Resolves when the last reconcile has settled. Do not await it inside that reconcile. */
  remove(controller: Controller): Promise<void>;
}
