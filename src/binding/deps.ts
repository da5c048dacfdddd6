import type { Controller } from '../engine/controller.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { ConsumerStores } from './stores/consumer-stores.ts';

/** What every part of the konnector is given. */
export interface BindingDeps {
  /** The consumer cluster, for watches. */
  readonly consumer: Cluster;
  /** Writes to the consumer: only while this process leads, and not at all in a dry run. */
  readonly client: Client;
  readonly stores: ConsumerStores;
  /** Namespaces of the consumer that hold this program's keys and those to providers: nothing in them is shared. */
  readonly ownNamespaces: ReadonlySet<string>;
  /** In the consumer; we may not write any in the provider. */
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Controllers that come and go while the process runs, behind the same lease as the others. */
  readonly running: RunningControllers;
}

export interface RunningControllers {
  add(controller: Controller): void;
  /** Resolves when its last reconcile has settled; not to be awaited inside of that reconcile. */
  remove(controller: Controller): Promise<void>;
}
