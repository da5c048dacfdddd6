import { createServer, type RequestListener } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { startAdmissionServer } from '../admission/server.ts';
import type { CertificateDeps } from '../certificates/controllers.ts';
import type { Config } from '../config.ts';
import { isLoopbackHttp } from '../inventory/http/http-client.ts';
import type { Mothership } from '../inventory/mothership/mothership.ts';
import { openMothership } from '../inventory/open-mothership.ts';
import { type Listening, listenHttp } from '../kit/listen.ts';
import { type Credentials, staticCredentials } from '../kube/credentials.ts';
import { openCluster } from '../kube/open-cluster.ts';
import type { Log } from '../observe/log.ts';
import { clock, type Half, type Host, leadership, recorder, storesProblem } from './host.ts';
import type { Serving } from './serving.ts';

export interface InventoryHalf extends Half {
  readonly loops: { readonly mothership: Mothership };
  /** Absent when the certificate comes from files. */
  readonly certificates: CertificateDeps | undefined;
}

/** Components wait while nobody leads, so whoever takes over has to do it soon. */
const lease = { name: 'drawbridge-inventory', leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 1_000 };
/** Connections for calls to one managed cluster; each watch has one of its own besides. */
const managedConnections = 4;
/**
 * How much the heap may grow beyond what lives in it before it is collected, in percent. V8 by itself takes up to 300 where the machine
 * has much memory, and gives little of that back; see docs/adr/0024.
 */
const heapGrowingPercent = 30;

/** Opens what the mothership needs. Rejects with a CodedError when the port of the callbacks cannot be had. */
export async function openInventory(
  host: Host,
  { own, journal, certificate }: Pick<Serving, 'own' | 'journal' | 'certificate'>,
  credentials: Credentials,
): Promise<InventoryHalf> {
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`);
  const { config, cluster, health, metrics, log } = host;
  const { callbackUrl, apiUrl, allowLoopbackHttp } = config.inventory;
  const { gate, guard } = leadership(host, { namespace: config.leaseNamespace, ...lease });
  const client = guard(cluster.client);
  const events = recorder(host, 'inventory', client);
  const { ca, servername } = (await credentials.material()).tls;
  const api = { ...(ca ? { ca } : {}), ...(servername ? { servername } : {}) };
  const opened = openMothership({
    cluster,
    client,
    events,
    journal,
    clock,
    random: Math.random,
    log,
    metrics,
    connect: (managed) => openCluster(managed, { clock, log, connections: managedConnections }),
    clientWith: (token) =>
      openCluster(staticCredentials({ server: credentials.server, tls: api, token }), { clock, log }),
    api: { url: apiUrl ?? credentials.server, ca: ca?.toString() },
    callbackUrl,
    homeNamespace: config.leaseNamespace,
    allowLoopbackHttp,
  });
  health.ready('inventory-stores', () => storesProblem(opened.stores));
  const callbacks = await serveCallbacks(config, opened.callbacks, certificate, log);
  return {
    gate,
    ports: { callbacks: callbacks.port },
    loops: opened,
    certificates: own && { ...own, client, clock, log, metrics },
    close: {
      callbacks: () => callbacks.close(),
      inventory: () => opened.close(),
      inventoryEvents: () => events.close(),
    },
  };
}

/** In every replica: those that do not lead say so. */
async function serveCallbacks(
  { inventory, bindAddress: host }: Config,
  app: RequestListener,
  certificate: Serving['certificate'],
  log: Log,
): Promise<Listening> {
  const { callbackUrl, callbackPort: port, allowLoopbackHttp } = inventory;
  if (!allowLoopbackHttp || !isLoopbackHttp(callbackUrl)) {
    return startAdmissionServer({ app, certificate: certificate(), host, port, clock, log });
  }
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 10_000 }, app);
  return listenHttp(server, host, port);
}
