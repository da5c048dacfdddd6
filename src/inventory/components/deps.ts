import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';

/** What the reference components are given. */
export interface ComponentsDeps {
  /** The management cluster: custom resources in it stand for what a cloud makes. */
  readonly management: Client;
  /** Namespace of these custom resources; undefined: that of the entry. */
  readonly namespace?: string;
  /** Opens managed clusters. */
  readonly connect: (credentials: Credentials) => Cluster;
  readonly clock: Clock;
}
