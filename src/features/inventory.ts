import { createServer, type RequestListener } from 'node:http';
import { writeAuthorizationMetrics } from '../admission/metrics.ts';
import { startAdmissionServer } from '../admission/server.ts';
import type { Config } from '../config.ts';
import { openAdmissionReads } from '../inventory/admission-reads.ts';
import { isLoopbackHttp } from '../inventory/http/http-component-client.ts';
import { openInventory } from '../inventory/open-inventory.ts';
import { type Listening, listenHttp } from '../kit/listen.ts';
import { withoutClientCertificate, withToken } from '../kube/credentials.ts';
import { openCluster } from '../kube/open-cluster.ts';
import type { Log } from '../observe/log.ts';
import {
  clock,
  type Feature,
  type Host,
  leadership,
  type OpenFeature,
  recorder,
  type Serving,
  storesProblem,
} from './feature.ts';

/** Its times are short, because components wait while no replica leads. */
const lease = { name: 'drawbridge-inventory', leaseDurationMs: 5_000, renewDeadlineMs: 3_500, retryPeriodMs: 1_000 };
/** Quick calls to one managed cluster. Slow and urgent calls and watches have more. */
const managedConnections = 4;

/** Runs the components of each cluster when their inputs change. */
export const inventory: Feature = {
  name: 'inventory',
  connections: 32,
  servesHttps: true,
  readFiles: () => open,
};

async function open(host: Host): Promise<OpenFeature> {
  const { config, cluster, credentials, metrics, log } = host;
  const { journal, certificate } = host.serving();
  const { callbackUrl, componentApiUrl, allowLoopbackHttp } = config;
  const { gate, leaderOnly } = leadership(host, { namespace: config.leaseNamespace, ...lease });
  const client = leaderOnly(cluster.client);
  const events = recorder(host, 'inventory', client);
  const { manager, callbacks, stores, close } = openInventory({
    cluster,
    client,
    events,
    journal,
    clock,
    random: Math.random,
    log,
    metrics,
    connect: (managed) => openCluster(managed, { clock, log, connections: managedConnections }),
    clientWith: (token) => openCluster(withToken(credentials, token), { clock, log }),
    apiUrl: componentApiUrl ?? credentials.server,
    apiTls: withoutClientCertificate((await credentials.connectionAuth()).tls),
    callbackUrl,
    homeNamespace: config.leaseNamespace,
    allowLoopbackHttp,
  });
  const callbackServer = await serveCallbacks(config, callbacks, certificate, log);
  const webhooks = openInventoryWebhooks(host);
  return {
    gate,
    controllers: manager.controllers(),
    webhookDeps: webhooks.webhookDeps,
    readiness: { 'inventory-stores': () => storesProblem(stores), ...webhooks.readiness },
    ports: { callbacks: callbackServer.port },
    close: {
      callbacks: () => callbackServer.close(),
      inventory: close,
      inventoryEvents: () => events.close(),
    },
  };
}

/** Every replica serves these, without controllers and callbacks. */
export function openInventoryWebhooks({
  cluster,
  metrics,
}: Pick<Host, 'cluster' | 'metrics'>): Required<Pick<OpenFeature, 'webhookDeps' | 'readiness'>> {
  const { reads, stores } = openAdmissionReads(cluster);
  return {
    webhookDeps: (shared) => ({
      inventory: { ...shared, ...reads, recordDeniedWrite: writeAuthorizationMetrics(metrics) },
    }),
    readiness: { 'inventory-webhooks': () => storesProblem(stores) },
  };
}

/**
 * Components report here; a replica that does not lead answers 503 `NotLeading`. Plain HTTP needs
 * `--allow-loopback-http` and an http callback URL on a loopback address.
 */
async function serveCallbacks(
  { callbackUrl, callbackPort: port, allowLoopbackHttp, bindAddress: host }: Config,
  app: RequestListener,
  certificate: Serving['certificate'],
  log: Log,
): Promise<Listening> {
  if (!allowLoopbackHttp || !isLoopbackHttp(callbackUrl)) {
    return startAdmissionServer({ app, certificate: certificate(), host, port, clock, log });
  }
  const server = createServer({ headersTimeout: 5_000, requestTimeout: 10_000 }, app);
  return listenHttp(server, host, port);
}
