import { Certificate } from '../admission/certificate.ts';
import type { CertificateDeps } from '../certificates/controllers.ts';
import { OwnCertificate } from '../certificates/own-certificate.ts';
import { openCertificateStores } from '../certificates/stores.ts';
import type { Config } from '../config.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { clock } from './host.ts';

export interface OpenCertificate {
  readonly certificate: Certificate | OwnCertificate;
  /** What its controller needs, when the server makes it. */
  readonly own?: Omit<CertificateDeps, 'client' | 'clock' | 'log' | 'metrics'>;
}

export type CertificateSource = (cluster: Cluster) => OpenCertificate;

/** The serving certificate: of files, which are read at once, or of a Secret, which needs a cluster. */
export function certificateFrom(config: Config, log: Log, metrics: Metrics): CertificateSource {
  const { certFile, keyFile, certificateNames: names } = config;
  const deps = { log, onServing: certificateExpiry(metrics) };
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

function certificateExpiry(metrics: Metrics): (pair: KeyPair) => void {
  const expiry = metrics.gauge({
    name: 'drawbridge_certificate_expiry_timestamp_seconds',
    help: 'End of the serving certificate, seconds since 1970.',
  });
  return ({ expiresAtMs }) => expiry.set({}, expiresAtMs / 1000);
}
