import { namespaces } from '../api/resources.ts';
import type { Clock } from '../kit/clock.ts';
import type { Cluster } from './cluster.ts';
import type { Credentials } from './credentials.ts';
import { TransportError } from './errors.ts';
import { createClient } from './http-client.ts';
import { type KubeLog, silentLog } from './log.ts';
import { type OwnCalls, ownCalls } from './own-calls.ts';
import { SharedStores, type WatchOptions } from './shared-stores.ts';
import { Transport } from './transport.ts';

export interface OpenClusterOptions {
  readonly clock: Clock;
  readonly log?: KubeLog;
  /** Uniform in [0, 1); default Math.random. */
  readonly random?: () => number;
  /** For quick calls, as in TransportOptions. Default 10. */
  readonly connections?: number;
  /** Of a call, as in TransportOptions. Default 30 000. */
  readonly timeoutMs?: number;
  /** As in TransportOptions. */
  readonly onServerTime?: (serverMs: number) => void;
  /** As in TransportOptions. */
  readonly onWarning?: (text: string) => void;
  readonly watches?: WatchOptions;
}

/** A cluster whose credentials can be replaced. */
export interface OpenCluster extends Cluster {
  /** As the user of these credentials. */
  readonly own: OwnCalls;
  /** For the same server; throws CodedError `ServerChanged` for another one. */
  update(credentials: Credentials): void;
}

/** Opens no connection yet. Throws TypeError if `credentials.server` is not a URL. */
export function openCluster(credentials: Credentials, options: OpenClusterOptions): OpenCluster {
  const { clock, log = silentLog, random = Math.random, watches } = options;
  const transport = new Transport(credentials, options);
  const client = createClient(transport);
  const stores = new SharedStores({ transport, clock, log, random, watches });
  return {
    client,
    own: ownCalls(transport),
    watch: (spec) => stores.open(spec),
    update: (next) => transport.update(next),
    async identity(namespace = 'kube-system') {
      const { uid } = (await client.get(namespaces, { name: namespace })).metadata;
      if (typeof uid === 'string' && uid !== '') return uid;
      throw new TransportError(`Namespace ${namespace}: the answer contains no uid`, undefined, false);
    },
    async close() {
      await stores.close();
      await transport.close();
    },
  };
}
