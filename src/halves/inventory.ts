import type { CertificateDeps } from '../certificates/controllers.ts';
import type { InventoryDeps } from '../inventory/deps.ts';
import type { Credentials } from '../kube/credentials.ts';
import { openCluster } from '../kube/open-cluster.ts';
import { clock, type Half, type Host, leadership, recorder } from './host.ts';
import type { Serving } from './serving.ts';

export interface InventoryHalf extends Half {
  readonly loops: InventoryDeps;
  /** Absent when the certificate comes from files. */
  readonly certificates: CertificateDeps | undefined;
}

/** Components wait while nobody leads, so whoever takes over has to do it soon. */
const lease = { name: 'drawbridge-inventory', leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 1_000 };
/** Connections for calls to one managed cluster; each watch has one of its own besides. */
const managedConnections = 4;

/** Opens what the mothership needs. Rejects with a CodedError when the port of the callbacks cannot be had. */
export async function openInventory(
  host: Host,
  { own, journal }: Serving,
  credentials: Credentials,
): Promise<InventoryHalf> {
  const { config, cluster, metrics, log } = host;
  const { callbackUrl, apiUrl, allowLoopbackHttp } = config.inventory;
  const { gate, guard } = leadership(host, { namespace: config.leaseNamespace, ...lease });
  const client = guard(cluster.client);
  const events = recorder(host, 'inventory', client);
  const { ca } = (await credentials.material()).tls;
  return {
    gate,
    ports: {},
    loops: {
      cluster,
      client,
      events,
      journal,
      clock,
      random: Math.random,
      log,
      metrics,
      connect: (managed) => openCluster(managed, { clock, log, connections: managedConnections }),
      api: { url: apiUrl ?? credentials.server, ca: ca?.toString() },
      callbackUrl,
      homeNamespace: config.leaseNamespace,
      allowLoopbackHttp,
    },
    certificates: own && { ...own, client, clock, log, metrics },
    close: {
      inventoryEvents: () => events.close(),
    },
  };
}
