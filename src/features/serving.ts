import { AuditHeads } from '../access/signing/audit-heads.ts';
import { KeySecret } from '../access/signing/key-secret.ts';
import { createAdmissionApp, type ServedFeatures } from '../admission/app.ts';
import { FileCertificate, readClientCAs, type ServingCertificate } from '../admission/certificate.ts';
import { FairQueue } from '../admission/fair-queue.ts';
import { outcomeMetrics, overloadMetrics, unknownPathMetric } from '../admission/metrics.ts';
import type { ReviewPorts } from '../admission/ports.ts';
import { startAdmissionServer } from '../admission/server.ts';
import { gatewayApiService } from '../api/gateway/names.ts';
import { destinationOf } from '../audit/fd-writer.ts';
import { headNames, headPurpose } from '../audit/head.ts';
import { type OpenJournal, openJournal } from '../audit/journal.ts';
import { type CertificateDeps, certificateControllers } from '../certificates/controllers.ts';
import { OwnCertificate } from '../certificates/own-certificate.ts';
import { type CertificateStores, openCertificateStores } from '../certificates/stores.ts';
import type { Config } from '../config.ts';
import { describe } from '../kit/errors.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { certificateExpiryMetric, unsignedLinesMetric } from '../observe/process-metrics.ts';
import { clock, type Host, leadership, type OpenFeature, type Serving, storesProblem } from './feature.ts';

/** What needs no cluster, and opens before `serve` connects to one. */
export interface ServingFiles {
  readonly openCertificate: CertificateSource;
  readonly journal: OpenJournal;
  readonly clientAuthorities?: Buffer;
}

/** At once, so that a wrong file name fails the start (`BadCertificate`, `AuditUnavailable`). */
export function openServingFiles(config: Config, log: Log, metrics: Metrics): ServingFiles {
  const openCertificate = certificateFrom(config, log, metrics);
  const { clientCaFile } = config;
  const clientAuthentication = clientCaFile === undefined ? {} : { clientAuthorities: readClientCAs(clientCaFile) };
  const journal = openJournal({ destination: destinationOf(config.auditLog), replica: config.identity, clock });
  return { openCertificate, journal, ...clientAuthentication };
}

/** Until it closes, SIGHUP reopens the audit journal. */
export function openServing(
  { config, cluster, credentials, metrics, log, signal }: Omit<Host, 'serving'>,
  { openCertificate, journal, clientAuthorities }: ServingFiles,
): Serving {
  const { client } = cluster;
  const { leaseNamespace: namespace, identity: replica } = config;
  const reopen = (): void => reopenJournal(journal, log);
  process.on('SIGHUP', reopen);
  const { certificate, controllerDeps } = openCertificate(cluster, () => renewal?.gate.leading === true);
  const feature = (['access', 'inventory', 'gateway'] as const).find((name) => config.features.includes(name));
  const objectNames = headNames[feature ?? 'access'];
  const shared = { client, namespace, clock, log };
  const adopt = config.adoptSigningKeys;
  const keys = new KeySecret({
    ...shared,
    name: objectNames.keys,
    purpose: headPurpose,
    adopt,
    rereadMs: AUDIT_KEYS_MS,
  });
  void keys.start(signal);
  const onUnsigned = unsignedLines(metrics);
  const heads = new AuditHeads({ ...shared, name: objectNames.heads, replica, journal, keys, onUnsigned });
  heads.start();
  const renewal = controllerDeps && certificateRenewal({ config, cluster, credentials, metrics, log }, controllerDeps);
  return {
    certificate: sharedAmongServers(certificate),
    ...(renewal ? { renewal } : {}),
    ...(clientAuthorities ? { clientAuthorities } : {}),
    journal,
    readiness: {
      certificate: () => certificate.problem(),
      ...(controllerDeps ? { 'certificate-stores': () => storesProblem(allStores(controllerDeps.stores)) } : {}),
      'audit-keys': () => keys.problem(),
    },
    close: {
      auditHeads: () => heads.close(),
      reopening: () => process.off('SIGHUP', reopen),
      certificate: () => certificate.close(),
    },
  };
}

/** Only a rotation changes the keys of the audit journal, and may take effect late. */
const AUDIT_KEYS_MS = 300_000;
/** Longer than those of features, because no step of a rotation is urgent. */
const renewalLease = { leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 5_000 };

/**
 * Only replicas that issue the certificate take this Lease: after a change of `--certificates`,
 * another one may still lead the features.
 */
function certificateRenewal(
  host: Pick<Host, 'config' | 'cluster' | 'credentials' | 'metrics' | 'log'>,
  deps: NonNullable<OpenCertificate['controllerDeps']>,
): Pick<OpenFeature, 'gate' | 'controllers'> {
  const { cluster, metrics, log } = host;
  const { gate, leaderOnly } = leadership(host, { ...deps.secret, ...renewalLease });
  const client = leaderOnly(cluster.client);
  return { gate, controllers: certificateControllers({ ...deps, client, clock, log, metrics }) };
}

/** Each call returns a handle to start and close independently. `certificate` stays open. */
export function sharedAmongServers(certificate: ServingCertificate): () => ServingCertificate {
  const listeners = new Set<(pair: KeyPair) => void>();
  let started = false;
  return () => {
    let registered: ((pair: KeyPair) => void) | undefined;
    return {
      get current() {
        return certificate.current;
      },
      start(listener) {
        registered = listener;
        listeners.add(listener);
        if (started) {
          // The certificate may have loaded another pair since this server read `current`.
          listener(certificate.current);
          return;
        }
        started = true;
        certificate.start((pair) => {
          for (const notify of listeners) notify(pair);
        });
      },
      close() {
        if (registered) listeners.delete(registered);
      },
    };
  };
}

const allStores = ({ secret, configurations }: CertificateStores) => [secret, ...configurations];

function reopenJournal(journal: OpenJournal, log: Log): void {
  try {
    journal.reopen();
    log.info('audit journal reopened');
  } catch (error) {
    log.error('failed to reopen the audit journal; the old file stays in use', { error: describe(error) });
  }
}

function unsignedLines(metrics: Metrics): (lines: number) => void {
  const gauge = unsignedLinesMetric(metrics);
  return (lines) => gauge.set({}, lines);
}

/** Of all open features. Rejects with CodedError `PortUnavailable`. */
export async function openWebhooks(
  { config, metrics, log }: Pick<Host, 'config' | 'metrics' | 'log'>,
  serving: Pick<Serving, 'certificate' | 'clientAuthorities' | 'journal'>,
  features: readonly Pick<OpenFeature, 'webhookDeps'>[],
): Promise<Required<Pick<OpenFeature, 'ports' | 'close'>>> {
  const { certificate, clientAuthorities, journal } = serving;
  const recordOverload = overloadMetrics(metrics);
  const reviews: ReviewPorts = {
    recordOutcome: outcomeMetrics(metrics),
    recordOverload,
    journal,
    clock,
    log,
  };
  const queue = new FairQueue({ clock });
  const served: ServedFeatures = Object.assign({}, ...features.map(({ webhookDeps }) => webhookDeps?.(reviews)));
  const server = await startAdmissionServer({
    app: createAdmissionApp(served, reviews, {
      queue,
      onUnknownPath: unknownPathMetric(metrics),
    }),
    certificate: certificate(),
    clientAuthorities,
    host: config.bindAddress,
    port: config.port,
    clock,
    log,
    queue,
    onRejected: () => recordOverload('connection'),
  });
  return { ports: { webhooks: server.port }, close: { webhooks: () => server.close() } };
}

interface OpenCertificate {
  readonly certificate: FileCertificate | OwnCertificate;
  readonly controllerDeps?: Omit<CertificateDeps, 'client' | 'clock' | 'log' | 'metrics'>;
}

/** `leads`: its controllers write the webhook configurations. */
type CertificateSource = (cluster: Cluster, leads: () => boolean) => OpenCertificate;

/** From files, read at once, or from a Secret, which needs a cluster. */
function certificateFrom(config: Config, log: Log, metrics: Metrics): CertificateSource {
  const { certFile, keyFile, certificateNames: names } = config;
  const deps = { log, onServing: certificateExpiry(metrics) };
  if (config.certificates === 'files') {
    const certificate = new FileCertificate({ certFile, keyFile, clock, ...deps });
    return () => ({ certificate });
  }
  const secret = { namespace: config.leaseNamespace, name: config.certificateSecret };
  return (cluster, leads) => {
    const stores = openCertificateStores(cluster, secret, {
      webhooks: config.webhookConfigurations,
      apiServices: config.features.includes('gateway') ? [gatewayApiService] : [],
    });
    const certificate = new OwnCertificate({ secret, names, stores, leads, clock, ...deps });
    return {
      certificate,
      controllerDeps: { secret, names, stores, certificate },
    };
  };
}

function certificateExpiry(metrics: Metrics): (pair: KeyPair) => void {
  const expiry = certificateExpiryMetric(metrics);
  return ({ expiresAtMs }) => expiry.set({}, expiresAtMs / 1000);
}
