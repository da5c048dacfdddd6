import type { Config } from './config.ts';
import { Manager } from './engine/manager.ts';
import { access } from './features/access.ts';
import { binding } from './features/binding.ts';
import { clock, countedWatches, type Feature, type Host, type OpenFeature, type Serving } from './features/feature.ts';
import { gateway } from './features/gateway.ts';
import { inventory } from './features/inventory.ts';
import { notify } from './features/notify.ts';
import { openServing, openServingFiles, openWebhooks } from './features/serving.ts';
import { describe } from './kit/errors.ts';
import { ambientCredentials } from './kube/kubeconfig.ts';
import { openCluster } from './kube/open-cluster.ts';
import { watchClockSkew } from './observe/clock-skew.ts';
import { Health } from './observe/health.ts';
import { startHealthServer } from './observe/health-server.ts';
import { startMetricsServer } from './observe/http.ts';
import { createLog, type Log } from './observe/log.ts';
import { createProcessMetrics, type Metrics } from './observe/metrics.ts';
import { unhandledRejectionsMetric, watchRefusalsMetric } from './observe/process-metrics.ts';

/** All features, in the order in which `serve` opens them. */
const allFeatures: readonly Feature[] = [access, binding, inventory, gateway, notify];

/**
 * The composition root: opens the configured features, and runs their controllers until `signal` aborts. Then closes the webhooks, the
 * features, their shared parts, the connection to the cluster, the ports of metrics and probes, and, last, the audit journal.
 *
 * Rejects with a CodedError if a file, the credentials, or a port is unavailable. It then closes nothing: end the process. Rejects with
 * `DrainDeadlineExceeded` if controllers do not stop in time. If the thread that answers probes ends, stops in the same way and rejects
 * with CodedError `HealthThreadEnded`.
 */
export async function serve(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat, clock });
  const metrics = createProcessMetrics();
  const health = new Health();
  countUnhandledRejections(log, metrics);

  const features = allFeatures.filter(({ name }) => config.features.includes(name));
  const servesHttps = features.some((feature) => feature.servesHttps);
  const servingFiles = servesHttps ? openServingFiles(config, log, metrics) : undefined;
  const openers = features.map((feature) => feature.readFiles(config));
  const watchRefusals = watchRefusalsMetric(metrics);
  const credentials = await ambientCredentials(config.kubeconfig);
  const cluster = openCluster(credentials, {
    clock,
    log,
    connections: Math.max(...features.map(({ connections }) => connections)),
    onServerTime: watchClockSkew({ clock, log, metrics }),
    // Bindings report a withdrawn permission of either cluster within seconds. Other features learn it when a watch ends.
    watches: { ...countedWatches('own', watchRefusals), probe: config.features.includes('binding') },
  });
  const removeStartCheck = health.addCheck('start', () => 'the process is starting');
  const program = new URL('health-thread.mjs', import.meta.url);
  const healthServer = await startHealthServer({ ...config.health, health, clock, program });
  const stop = AbortSignal.any([signal, healthServer.failed]);
  const metricsServer = await startMetricsServer({
    host: config.bindAddress,
    port: config.metricsPort,
    metrics,
    clock,
  });
  const manager = new Manager({ clock, log });
  const parts = { config, cluster, credentials, metrics, watchRefusals, log, manager, signal: stop };
  const serving = servingFiles && openServing(parts, servingFiles);
  const host: Host = { ...parts, serving: () => requireServing(serving) };
  const registerChecks = ({ readiness }: Pick<OpenFeature, 'readiness'>): void => {
    for (const [name, check] of Object.entries(readiness)) health.addCheck(name, check);
  };
  if (serving) registerChecks(serving);
  const opened: OpenFeature[] = [];
  for (const open of openers) {
    const feature = await open(host);
    registerChecks(feature);
    opened.push(feature);
  }
  const hasWebhooks = opened.some(({ webhookDeps }) => webhookDeps !== undefined);
  const webhooks = serving && hasWebhooks ? await openWebhooks(host, serving, opened) : undefined;
  health.addCheck('shutdown', () => (stop.aborted ? 'shutting down' : undefined));
  removeStartCheck();
  log.info('serving', {
    features: config.features,
    ...webhooks?.ports,
    ...mergeRecords(opened.map(({ ports }) => ports)),
    health: healthServer.port,
    metrics: metricsServer.port,
    server: credentials.server,
  });
  const groups = [...opened, ...(serving?.renewal ? [serving.renewal] : [])];
  for (const { gate, controllers } of groups) for (const controller of controllers) manager.add(controller, gate);

  try {
    await manager.run(stop);
    healthServer.failed.throwIfAborted();
  } finally {
    await closeAll(log, {
      ...webhooks?.close,
      ...mergeRecords(opened.map(({ close }) => close)),
      ...serving?.close,
      cluster: () => cluster.close(),
      metrics: () => metricsServer.close(),
      health: () => healthServer.close(),
      journal: () => servingFiles?.journal.close(),
    });
    log.info('stopped');
  }
}

const mergeRecords = <T>(records: readonly (Readonly<Record<string, T>> | undefined)[]): Readonly<Record<string, T>> =>
  Object.assign({}, ...records);

function requireServing(serving: Serving | undefined): Serving {
  if (serving === undefined)
    throw new Error('only a feature with servesHttps: true may call host.serving(); set it in that feature');
  return serving;
}

/** Closes all parts in order. If one fails to close, logs the error and closes the next. */
async function closeAll(log: Log, parts: Readonly<Record<string, () => unknown>>): Promise<void> {
  for (const [part, close] of Object.entries(parts)) {
    try {
      await close();
    } catch (error) {
      log.warn('cannot close a part of the server; the shutdown continues', { part, error: describe(error) });
    }
  }
}

/** Counts unhandled rejections instead of exiting: each is a bug, but the server must keep revoking access. */
function countUnhandledRejections(log: Log, metrics: Metrics): void {
  const counter = unhandledRejectionsMetric(metrics);
  process.on('unhandledRejection', (error) => {
    counter.inc();
    log.error('unhandled rejection; the server continues; report this error to the maintainers', {
      error: describe(error),
    });
  });
}
