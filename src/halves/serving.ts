import { AuditHeads } from '../access/signing/audit-heads.ts';
import { KeySecret } from '../access/signing/key-secret.ts';
import type { ServingCertificate } from '../admission/certificate.ts';
import { destinationOf } from '../audit/fd-writer.ts';
import { type OpenJournal, openJournal } from '../audit/journal.ts';
import type { Config } from '../config.ts';
import { describe } from '../kit/errors.ts';
import type { KeyPair } from '../kit/key-pair.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { type CertificateSource, certificateFrom, type OpenCertificate } from './certificate.ts';
import { clock, type Host } from './host.ts';

/** What can be had without a cluster. */
export interface ServingFiles {
  readonly openCertificate: CertificateSource;
  readonly journal: OpenJournal;
}

/** What the halves share that answer calls and decide: one certificate, one journal, the keys that its heads are signed with. */
export interface Serving {
  /** For one server: each gets every new pair. */
  certificate(): ServingCertificate;
  /** What the controller of the certificate needs, when the server makes it. */
  readonly own: OpenCertificate['own'];
  readonly journal: OpenJournal;
  readonly keys: KeySecret;
  /** Resolves after the first attempt to read the keys. */
  readonly keysTried: Promise<void>;
  /** How to close it, in order, when no more lines come. The journal stays open: it is closed last. */
  readonly close: Readonly<Record<string, () => unknown>>;
}

/** Files are read at once, because a person who named the wrong ones waits for an answer. Throws a CodedError that says which. */
export function readServingFiles(config: Config, log: Log, metrics: Metrics): ServingFiles {
  const openCertificate = certificateFrom(config, log, metrics);
  const journal = openJournal({ destination: destinationOf(config.auditLog), replica: config.identity, clock });
  return { openCertificate, journal };
}

export function openServing(host: Host, { openCertificate, journal }: ServingFiles, signal: AbortSignal): Serving {
  const { config, cluster, health, metrics, log } = host;
  const { client } = cluster;
  const { leaseNamespace: namespace, identity: replica } = config;
  const reopen = (): void => reopenJournal(journal, log);
  process.on('SIGHUP', reopen);
  const { certificate, own } = openCertificate(cluster);
  health.ready('certificate', () => certificate.problem());
  const keys = new KeySecret({ client, namespace, clock, log });
  const keysTried = keys.start(signal);
  const onUnsigned = unsignedLines(metrics);
  const heads = new AuditHeads({ client, namespace, replica, journal, keys, clock, log, onUnsigned });
  heads.start();
  return {
    certificate: sharedAmongServers(certificate),
    own,
    journal,
    keys,
    keysTried,
    close: {
      auditHeads: () => heads.close(),
      reopening: () => process.off('SIGHUP', reopen),
      certificate: () => certificate.close(),
    },
  };
}

/** Gives each server a certificate of its own to listen to, and to close. */
export function sharedAmongServers(certificate: ServingCertificate): () => ServingCertificate {
  const listeners = new Set<(pair: KeyPair) => void>();
  let started = false;
  return () => {
    let own: ((pair: KeyPair) => void) | undefined;
    return {
      get current() {
        return certificate.current;
      },
      start(listener) {
        own = listener;
        listeners.add(listener);
        if (started) return;
        started = true;
        certificate.start((pair) => {
          for (const each of listeners) each(pair);
        });
      },
      close() {
        if (own) listeners.delete(own);
      },
    };
  };
}

function reopenJournal(journal: OpenJournal, log: Log): void {
  try {
    journal.reopen();
    log.info('audit journal reopened');
  } catch (error) {
    log.error('audit journal not reopened; the old file stays in use', { error: describe(error) });
  }
}

function unsignedLines(metrics: Metrics): (lines: number) => void {
  const gauge = metrics.gauge({
    name: 'drawbridge_audit_unsigned_lines',
    help: 'Audit lines of this process that no published head covers yet.',
  });
  return (lines) => gauge.set({}, lines);
}
