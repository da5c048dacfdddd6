import { X509Certificate } from 'node:crypto';
import type { KubeObject } from '../../../src/api/object.ts';
import {
  apiServices,
  mutatingWebhookConfigurations,
  secrets,
  validatingWebhookConfigurations,
} from '../../../src/api/resources.ts';
import { type CertificateDeps, certificateControllers } from '../../../src/certificates/controllers.ts';
import { OwnCertificate } from '../../../src/certificates/own-certificate.ts';
import { openCertificateStores } from '../../../src/certificates/stores.ts';
import { Manager } from '../../../src/engine/manager.ts';
import { type Log, noLog } from '../../../src/observe/log.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { MemoryCluster } from '../access/lifecycle/memory-cluster.ts';

export const secret = { namespace: 'ns', name: 'pair' };
export const days = 24 * 3600 * 1000;
const configurationNames = ['a', 'b'];
export const apiService = 'v1.example.org';
const configurations = [mutatingWebhookConfigurations, validatingWebhookConfigurations];

/** Replicas that share one cluster in memory. Tests observe each call and each write. */
export class CertificateStage {
  readonly clock = new SimulatedClock();
  readonly cluster = new MemoryCluster(this.clock);
  readonly lines: unknown[] = [];
  readonly replicas: OwnCertificate[] = [];
  /** Cached results of signature checks, by PEM, because tests check them many thousand times. */
  readonly #serials = new Map<string, string>();
  readonly #signed = new Map<string, boolean>();
  readonly #stops: (() => Promise<void>)[] = [];
  readonly #log: Log;

  readonly #configurationNames: readonly string[];
  readonly #apiServices: readonly string[];

  /** `calls`: the objects by which API servers call the replicas. */
  constructor({ calls = 'webhooks' }: { calls?: 'webhooks' | 'api-service' | 'both' } = {}) {
    this.#configurationNames = calls === 'api-service' ? [] : configurationNames;
    this.#apiServices = calls === 'webhooks' ? [] : [apiService];
    const line = (...parts: unknown[]): number => this.lines.push(parts);
    this.#log = { ...noLog, error: line, warn: line, info: line, debug: line, child: () => this.#log };
    this.putConfigurations();
    if (calls !== 'webhooks') this.putApiService();
  }

  putApiService(caBundle?: string): void {
    const service = { namespace: 'ns', name: 'svc', port: 443 };
    this.cluster.put(apiServices, {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: apiServices.kind,
      metadata: { name: apiService },
      spec: { group: 'example.org', version: 'v1', service, ...(caBundle === undefined ? {} : { caBundle }) },
    });
  }

  putConfigurations(caBundle?: string): void {
    for (const resource of configurations) {
      for (const name of this.#configurationNames) this.putConfiguration(resource, name, caBundle);
    }
  }

  putConfiguration(resource = validatingWebhookConfigurations, name = 'a', caBundle?: string): void {
    const clientOf = (path: string): unknown => ({
      service: { namespace: 'ns', name: 'svc', path },
      ...(caBundle === undefined ? {} : { caBundle }),
    });
    this.cluster.put(resource, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: resource.kind,
      metadata: { name },
      webhooks: [
        { name: 'one', clientConfig: clientOf('/one') },
        { name: 'two', clientConfig: clientOf('/two') },
      ],
    });
  }

  /** Adds a replica, which knows the `configurations` of its version. `lead` starts its controller; `stop` ends it. */
  replica({ leads = false, names = ['svc.ns.svc'], configurations = this.#configurationNames } = {}): {
    readonly certificate: OwnCertificate;
    lead(): void;
    stop(): Promise<void>;
  } {
    const { clock, cluster } = this;
    const log = this.#log;
    const stores = openCertificateStores(cluster, secret, { webhooks: configurations, apiServices: this.#apiServices });
    let leading = false;
    const certificate = new OwnCertificate({ stores, secret, names, leads: () => leading, clock, log });
    this.replicas.push(certificate);
    let end = async (): Promise<void> => {};
    const lead = (): void => {
      leading = true;
      end = this.#lead({ stores, certificate, names });
    };
    const stop = async (): Promise<void> => {
      leading = false;
      await end();
    };
    this.#stops.push(stop);
    if (leads) lead();
    return { certificate, lead, stop };
  }

  /** Starts the controller of a leader. Returns what ends it. */
  #lead(its: Pick<CertificateDeps, 'stores' | 'certificate' | 'names'>): () => Promise<void> {
    const { clock, cluster } = this;
    const log = this.#log;
    const manager = new Manager({ clock, log });
    const { client } = cluster;
    const deps = { ...its, client, secret, clock, log, metrics: createMetrics() };
    for (const controller of certificateControllers(deps)) manager.add(controller);
    const signal = new AbortController();
    const ended = manager.run(signal.signal);
    return async () => {
      signal.abort();
      await Promise.all([ended, clock.advance(10)]);
    };
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) await stop();
  }

  /** The PEM of the caBundle of each webhook, and of the APIService. */
  bundles(): string[] {
    const ofWebhooks = this.#clientConfigs().map(({ caBundle }) => caBundle);
    const ofApiServices = this.#apiServices.map(
      (name) => (this.cluster.find(apiServices, { name }) as unknown as { spec: { caBundle?: string } }).spec.caBundle,
    );
    return [...ofWebhooks, ...ofApiServices].map((caBundle) => Buffer.from(caBundle ?? '', 'base64').toString());
  }

  /** The distinct paths of all webhooks. */
  configuredPaths(): string[] {
    return [...new Set(this.#clientConfigs().map(({ service }) => service.path))].sort();
  }

  #clientConfigs(): { caBundle?: string; service: { path: string } }[] {
    type Webhook = { clientConfig: { caBundle?: string; service: { path: string } } };
    return configurations.flatMap((resource) =>
      this.#configurationNames.flatMap((name) => {
        const { webhooks } = this.cluster.find(resource, { name }) as unknown as { webhooks: Webhook[] };
        return webhooks.map(({ clientConfig }) => clientConfig);
      }),
    );
  }

  /** `data` of the Secret, decoded. */
  data(): Record<string, string> {
    const data = (this.cluster.find(secrets, secret)?.['data'] ?? {}) as Record<string, string>;
    return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));
  }

  putSecret(object: Partial<KubeObject> & { labels?: Record<string, string> }): void {
    const { labels = {}, ...rest } = object;
    this.cluster.put(secrets, { apiVersion: 'v1', kind: 'Secret', ...rest, metadata: { ...secret, labels } });
  }

  serials(): string[] {
    return this.replicas.map(({ current }) => {
      const cert = current.cert.toString();
      const serial = this.#serials.get(cert) ?? new X509Certificate(cert).serialNumber;
      this.#serials.set(cert, serial);
      return serial;
    });
  }

  problems(): (string | undefined)[] {
    return this.replicas.map((replica) => replica.problem());
  }

  /** The replicas that an API server could not call, because a caBundle has no authority of the served certificate. */
  untrusted(): number[] {
    const bundles = new Set(this.bundles());
    const isTrusted = (cert: string): boolean =>
      [...bundles].every((bundle) => pems(bundle).some((pem) => this.#isSigned(cert, pem)));
    return this.replicas.flatMap(({ current }, index) => (isTrusted(current.cert.toString()) ? [] : [index]));
  }

  #isSigned(leaf: string, authority: string): boolean {
    const pair = leaf + authority;
    const isSigned =
      this.#signed.get(pair) ?? new X509Certificate(leaf).verify(new X509Certificate(authority).publicKey);
    this.#signed.set(pair, isSigned);
    return isSigned;
  }

  writes(): string[] {
    return this.cluster.calls.filter(({ verb }) => verb !== 'get').map(({ verb, plural }) => `${verb} ${plural}`);
  }
}

export const pems = (bundle: string): string[] => bundle.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
