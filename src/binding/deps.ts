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
  /** Client of the consumer. It writes only while this replica is the leader; in a dry run it changes nothing. */
  readonly client: Client;
  readonly stores: ConsumerStores;
  /** `kube-bind`, and the namespaces of the Leases, which hold the server's keys. Claims share no object of these namespaces. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** Recorder of Events in the consumer. The server has no permission to write Events in a provider. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The controllers that run while this replica holds the Lease of the binding feature. */
  readonly runningControllers: RunningControllers;
}

/** Adds and removes controllers at run time. */
export interface RunningControllers {
  /**
   * Starts the controller now or, if this replica is not the leader, once it is. Throws CodedError `AlreadyAdded` if the controller was
   * added and not removed.
   */
  add(controller: Controller): void;
  /** Stops the controller. Resolves when its last reconcile has settled, so do not await it inside that reconcile. */
  remove(controller: Controller): Promise<void>;
}
