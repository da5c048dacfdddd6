import { readFileSync } from 'node:fs';
import { admissionReads } from './access/admission-reads.ts';
import { enteredPods } from './access/entered-pods.ts';
import { GrantTally } from './access/life/grant-tally.ts';
import { parseGrantable } from './access/policy/grantable.ts';
import { AuditHeads } from './access/signing/audit-heads.ts';
import { KeySecret } from './access/signing/key-secret.ts';
import { Signer } from './access/signing/signer.ts';
import { type AccessStores, openAccessStores } from './access/stores/access-stores.ts';
import { createAdmissionApp } from './admission/app.ts';
import { Certificate } from './admission/certificate.ts';
import { outcomeMetrics } from './admission/outcome-metrics.ts';
import type { AdmissionPorts } from './admission/ports.ts';
import { startAdmissionServer } from './admission/server.ts';
import { keyOf } from './api/object.ts';
import { destinationOf } from './audit/fd-writer.ts';
import { type OpenJournal, openJournal } from './audit/journal.ts';
import type { CertificateDeps } from './certificates/controllers.ts';
import { OwnCertificate } from './certificates/own-certificate.ts';
import { openCertificateStores } from './certificates/stores.ts';
import type { Config } from './config.ts';
import { controllers } from './controllers.ts';
import { Manager } from './engine/manager.ts';
import type { RbacRule } from './grants/rule-cover.ts';
import { sleep, systemClock } from './kit/clock.ts';
import { describe } from './kit/errors.ts';
import type { KeyPair } from './kit/key-pair.ts';
import type { Client } from './kube/client.ts';
import type { Cluster } from './kube/cluster.ts';
import { type EventRecorder, eventRecorder } from './kube/event-recorder.ts';
import { ambientCredentials } from './kube/kubeconfig.ts';
import { leaseGate } from './kube/lease-gate.ts';
import { openCluster } from './kube/open-cluster.ts';
import { watchClockSkew } from './observe/clock-skew.ts';
import { Health } from './observe/health.ts';
import { startMetricsServer, startProbeServer } from './observe/http.ts';
import { createLog, type Log } from './observe/log.ts';
import { createMetrics, type Metrics } from './observe/metrics.ts';

const clock = systemClock;

/** How long the controllers wait for the first attempt to read the signing keys, milliseconds. */
const keysWaitMs = 1000;

/**
 * The composition root: opens everything, wires it together, serves until `signal` aborts, and closes it in reverse order.
 * Rejects with a CodedError when a file, credential or port cannot be had.
 */
export async function serve(config: Config, signal: AbortSignal): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat, clock });
  const metrics = createMetrics();
  const health = new Health();
  countUnhandledRejections(log, metrics);

  const openCertificate = certificateFrom(config, { log, onServing: certificateExpiry(metrics) });
  const grantable = config.grantable === undefined ? [] : parseGrantable(readFileSync(config.grantable));
  const journal = openJournal({ destination: destinationOf(config.auditLog), replica: config.identity, clock });
  const reopen = (): void => reopenJournal(journal, log);
  process.on('SIGHUP', reopen);

  const credentials = await ambientCredentials(config.kubeconfig);
  const cluster = openCluster(credentials, {
    clock,
    log,
    onServerTime: watchClockSkew({ clock, log, metrics }),
  });
  const { certificate, own } = openCertificate(cluster);
  const stores = openAccessStores(cluster);
  const keys = new KeySecret({ client: cluster.client, namespace: config.leaseNamespace, clock, log });
  const signer = new Signer(keys);
  const limits = { perUser: config.maxGrantsPerUser, perNamespace: config.maxGrantsPerNamespace };
  const tally = new GrantTally({ stores, limits, clock });
  const keysTried = keys.start(signal);
  const heads = new AuditHeads({
    client: cluster.client,
    namespace: config.leaseNamespace,
    replica: config.identity,
    journal,
    keys,
    clock,
    log,
    onUnsigned: unsignedLines(metrics),
  });
  heads.start();
  const eventsThrough = (client: Client): EventRecorder =>
    eventRecorder({ client, clock, log, controller: 'drawbridge.dev/access', instance: config.identity });
  // Every replica answers webhooks; what the controllers tell goes through the leader's client.
  const podEvents = eventsThrough(cluster.client);

  const probes = await startProbeServer({ host: config.bindAddress, port: config.healthPort, health });
  const metricsServer = await startMetricsServer({ host: config.bindAddress, port: config.metricsPort, metrics });
  const ports = admissionPorts({
    stores,
    signer,
    tally,
    grantable,
    client: cluster.client,
    events: podEvents,
    breakGlassGroup: config.breakGlassGroup,
    journal,
    metrics,
    log,
  });
  const webhooks = await startAdmissionServer({
    app: createAdmissionApp(ports),
    certificate,
    host: config.bindAddress,
    port: config.port,
    clock,
    log,
  });

  health.ready('certificate', () => certificate.problem());
  health.ready('stores', () => storesProblem(stores));
  health.ready('signing-keys', () => keys.problem());
  health.ready('shutdown', () => (signal.aborted ? 'shutting down' : undefined));
  log.info('serving', {
    webhooks: webhooks.port,
    health: probes.port,
    metrics: metricsServer.port,
    server: credentials.server,
  });

  const manager = new Manager({ clock, log });
  const gate = config.leaderElect
    ? leaseGate({
        client: cluster.client,
        name: 'drawbridge-access',
        namespace: config.leaseNamespace,
        identity: config.identity,
        clock,
        log,
      })
    : undefined;
  const client: Client = gate ? gate.guard(cluster.client) : cluster.client;
  const requestEvents = eventsThrough(client);
  const loops = controllers({
    access: {
      client,
      signer,
      tally,
      grantable,
      stores,
      journal,
      events: requestEvents,
      clock,
      log,
      metrics,
      trustExistingTemplates: config.trustExistingTemplates,
    },
    certificates: own && { ...own, client, clock, log, metrics },
  });
  for (const controller of [...loops.access, ...loops.certificates]) manager.add(controller, gate);

  try {
    // Without keys every live grant would fail its first look. Ends need none, so nothing waits long for them.
    await Promise.race([keysTried, sleep(clock, keysWaitMs, signal).catch(() => undefined)]);
    await manager.run(signal);
  } finally {
    process.off('SIGHUP', reopen);
    await closeAll(log, {
      webhooks: () => webhooks.close(),
      certificate: () => certificate.close(),
      events: () => Promise.all([podEvents.close(), requestEvents.close()]),
      auditHeads: () => heads.close(),
      cluster: () => cluster.close(),
      metrics: () => metricsServer.close(),
      health: () => probes.close(),
      journal: () => journal.close(),
    });
    log.info('stopped');
  }
}

function certificateExpiry(metrics: Metrics): (pair: KeyPair) => void {
  const expiry = metrics.gauge({
    name: 'drawbridge_certificate_expiry_timestamp_seconds',
    help: 'End of the serving certificate, seconds since 1970.',
  });
  return ({ expiresAtMs }) => expiry.set({}, expiresAtMs / 1000);
}

interface ServingDeps {
  readonly log: Log;
  readonly onServing: (pair: KeyPair) => void;
}

interface OpenCertificate {
  readonly certificate: Certificate | OwnCertificate;
  /** What its controller needs, when the server makes it. */
  readonly own?: Omit<CertificateDeps, 'client' | 'clock' | 'log' | 'metrics'>;
}

/** Files are read at once, because a person who named the wrong ones waits for an answer; the other way needs a cluster. */
function certificateFrom(config: Config, deps: ServingDeps): (cluster: Cluster) => OpenCertificate {
  const { certFile, keyFile, certificateNames: names } = config;
  if (config.certificates === 'files') {
    const certificate = new Certificate({ certFile, keyFile, clock, ...deps });
    return () => ({ certificate });
  }
  const secret = { namespace: config.leaseNamespace, name: config.certificateSecret };
  return (cluster) => {
    const stores = openCertificateStores(cluster, secret, config.webhookConfigurations);
    const certificate = new OwnCertificate({ secret, names, stores, clock, ...deps });
    return { certificate, own: { secret, names, stores, certificate } };
  };
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

interface AdmissionDeps {
  readonly stores: AccessStores;
  readonly signer: Signer;
  readonly tally: GrantTally;
  readonly grantable: readonly RbacRule[];
  readonly client: Client;
  readonly events: EventRecorder;
  readonly breakGlassGroup: string | undefined;
  readonly journal: OpenJournal;
  readonly metrics: Metrics;
  readonly log: Log;
}

function admissionPorts(deps: AdmissionDeps): AdmissionPorts {
  const { stores, signer, tally, grantable, client, events, breakGlassGroup, journal, metrics, log } = deps;
  return {
    ...admissionReads(stores, client, tally),
    grantable,
    sealStamp: (stamp) => signer.sealStamp(stamp),
    sealAuthor: (stamp) => signer.sealAuthor(stamp),
    ...enteredPods({ stores, client, signer, clock }),
    breakGlassGroup,
    podEntered: ({ type, namespace, pod, reason, note }) => {
      // kubectl describe looks for Events by uid, and the review has none.
      const uid = stores.pods.get(keyOf({ namespace, name: pod }))?.uid;
      const regarding = { apiVersion: 'v1', kind: 'Pod', namespace, name: pod, ...(uid === undefined ? {} : { uid }) };
      events.record({ regarding, type, reason, action: 'Connect', note });
    },
    answered: outcomeMetrics(metrics),
    journal,
    clock,
    log,
  };
}

function unsignedLines(metrics: Metrics): (lines: number) => void {
  const gauge = metrics.gauge({
    name: 'drawbridge_audit_unsigned_lines',
    help: 'Audit lines of this process that no published head covers yet.',
  });
  return (lines) => gauge.set({}, lines);
}

/** A healthy watch hears of the API server at least every 30 s; what has been silent for twice as long is out of date. */
const STALE_MS = 60_000;

/** Names what has not been listed yet or is out of date; an optional kind that is not installed counts as listed. */
function storesProblem(stores: AccessStores): string | undefined {
  const names = (which: (store: AccessStores['all'][number]) => boolean): string =>
    stores.all
      .filter(which)
      .map((store) => store.resource.plural)
      .join(', ');
  const waiting = names((store) => !store.synced);
  if (waiting) return `not listed yet: ${waiting}`;
  const stale = names((store) => store.ageMs > STALE_MS);
  return stale ? `no word from the API server for over ${STALE_MS / 1000} s: ${stale}` : undefined;
}

function reopenJournal(journal: OpenJournal, log: Log): void {
  try {
    journal.reopen();
    log.info('audit journal reopened');
  } catch (error) {
    log.error('audit journal not reopened; the old file stays in use', { error: describe(error) });
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
