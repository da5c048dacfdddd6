import { namespaces } from '../api/resources.ts';
import type { Clock } from '../kit/clock.ts';
import type { Cluster } from './cluster.ts';
import type { Credentials } from './credentials.ts';
import { TransportError } from './errors.ts';
import { createClient } from './http-client.ts';
import { type KubeLog, silentLog } from './log.ts';
import { SharedStores } from './shared-stores.ts';
import { Transport } from './transport.ts';

export interface OpenClusterOptions {
  readonly clock: Clock;
  readonly log?: KubeLog;
  /** Uniform in [0, 1); default Math.random. */
  readonly random?: () => number;
  /** The most connections for quick calls, as in TransportOptions. Default 10. */
  readonly connections?: number;
  /** Called with the server's wall clock (epoch ms, whole seconds) for every answer with a `Date`, except those to watches. */
  readonly onServerTime?: (serverMs: number) => void;
}

/** A cluster whose credentials can be replaced. */
export interface OpenCluster extends Cluster {
  /** Uses other credentials for the same server from now on. Throws CodedError `ServerChanged` if they name another server. */
  update(credentials: Credentials): void;
}

/** Opens no connection before the first call or watch. Throws TypeError if `credentials.server` is not a URL. */
export function openCluster(credentials: Credentials, options: OpenClusterOptions): OpenCluster {
  const { clock, log = silentLog, random = Math.random } = options;
  const transport = new Transport(credentials, options);
  const client = createClient(transport);
  const stores = new SharedStores({ transport, clock, log, random });
  return {
    client,
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
