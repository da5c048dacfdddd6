import type { Journal } from '../audit/journal.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Credentials } from '../kube/credentials.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';

/** What every part of the inventory half is given. */
export interface InventoryDeps {
  /** The cluster that holds the inventory, for watches and live reads. */
  readonly cluster: Cluster;
  /** Writes to it, and tokens: only while this process leads. */
  readonly client: Client;
  readonly events: EventRecorder;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Opens the managed clusters that are watched, from their kubeconfigs. */
  readonly connect: (credentials: Credentials) => Cluster;
  /** The same cluster with this token and nothing else. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  /** The API server as components reach it: part of every request, and what they compare it with. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
  /** Namespace of the account that calls to components come from. */
  readonly homeNamespace: string;
  readonly allowLoopbackHttp: boolean;
}
