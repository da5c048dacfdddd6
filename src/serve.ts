import type { Config } from './config.ts';
import { controllers } from './controllers.ts';
import { Manager } from './engine/manager.ts';
import { openAccess, readGrantable } from './halves/access.ts';
import { openBinding } from './halves/binding.ts';
import { clock, type Host } from './halves/host.ts';
import { openInventory } from './halves/inventory.ts';
import { openServing, readServingFiles } from './halves/serving.ts';
import { openWebhooks } from './halves/webhooks.ts';
import { describe } from './kit/errors.ts';
import { ambientCredentials } from './kube/kubeconfig.ts';
import { openCluster } from './kube/open-cluster.ts';
import { watchClockSkew } from './observe/clock-skew.ts';
import { Health } from './observe/health.ts';
import { startMetricsServer, startProbeServer } from './observe/http.ts';
import { createLog, type Log } from './observe/log.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';

/** Connections for calls to the cluster that this process runs in. */
const connections = { access: 10, binding: 32, inventory: 32 };

/**
 * The composition root: opens the halves that were asked for, runs their loops until `signal` aborts, and closes everything in reverse
 * order. Rejects with a CodedError when a file, credential or port cannot be had.
 */
export async function serve(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat, clock });
  const metrics = createMetrics();
  const health = new Health();
  countUnhandledRejections(log, metrics);

  const { features } = config;
  const [withAccess, withInventory] = [features.includes('access'), features.includes('inventory')];
  const files = withAccess || withInventory ? readServingFiles(config, log, metrics) : undefined;
  const grantable = withAccess ? readGrantable(config) : [];
  const credentials = await ambientCredentials(config.kubeconfig);
  const cluster = openCluster(credentials, {
    clock,
    log,
    connections: Math.max(...features.map((feature) => connections[feature])),
    onServerTime: watchClockSkew({ clock, log, metrics }),
  });
  const probes = await startProbeServer({ ...config.health, health });
  const metricsServer = await startMetricsServer({ host: config.bindAddress, port: config.metricsPort, metrics });
  const manager = new Manager({ clock, log });
  const host: Host = { config, cluster, health, metrics, log };
  const serving = files && openServing(host, files, signal);
  const access = serving && withAccess ? openAccess(host, serving, grantable, signal) : undefined;
  const binding = features.includes('binding') ? openBinding(host, manager) : undefined;
  const inventory = serving && withInventory ? await openInventory(host, serving, credentials) : undefined;
  const webhooks = serving && (await openWebhooks(host, serving, access?.reviews));
  health.ready('shutdown', () => (signal.aborted ? 'shutting down' : undefined));
  log.info('serving', {
    features,
    ...webhooks?.ports,
    ...inventory?.ports,
    health: probes.port,
    metrics: metricsServer.port,
    server: credentials.server,
  });

  const loops = controllers({
    access: access?.loops,
    certificates: (access ?? inventory)?.certificates,
    binding: binding?.loops,
    inventory: inventory?.loops,
  });
  for (const controller of loops.access) manager.add(controller, access?.gate);
  for (const controller of loops.certificates) manager.add(controller, (access ?? inventory)?.gate);
  for (const controller of loops.binding) manager.add(controller, binding?.gate);
  for (const controller of loops.inventory) manager.add(controller, inventory?.gate);

  try {
    await access?.ready();
    await manager.run(signal);
  } finally {
    await closeAll(log, {
      ...webhooks?.close,
      ...access?.close,
      ...binding?.close,
      ...inventory?.close,
      ...serving?.close,
      cluster: () => cluster.close(),
      metrics: () => metricsServer.close(),
      health: () => probes.close(),
      journal: () => files?.journal.close(),
    });
    log.info('stopped');
  }
}

/** One after the other, in order; what cannot be closed keeps nothing else open. */
async function closeAll(log: Log, parts: Readonly<Record<string, () => unknown>>): Promise<void> {
  for (const [part, close] of Object.entries(parts)) {
    try {
      await close();
    } catch (error) {
      log.warn('not closed in good order', { part, error: describe(error) });
    }
  }
}

/** A rejection that nobody handled is a bug of ours, never a reason to stop revoking access. */
function countUnhandledRejections(log: Log, metrics: Metrics): void {
  const counter = metrics.counter({
    name: 'drawbridge_unhandled_rejections_total',
    help: 'Bugs: promises that failed and that nobody looked at.',
  });
  process.on('unhandledRejection', (error) => {
    counter.inc();
    log.error('unhandled rejection', { error: describe(error) });
  });
}
