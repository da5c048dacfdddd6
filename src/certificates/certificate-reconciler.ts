import { apiVersionOf, type KubeObject, keyOf, type ObjectName } from '../api/object.ts';
import { ownLabels } from '../api/own-labels.ts';
import { secrets } from '../api/resources.ts';
import { after, done, type Reconciler, type Result } from '../engine/result.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import type { Client } from '../kube/client.ts';
import { isAlreadyExists } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { authorityIn, type Material, toData, trustBundle } from './material.ts';
import { foreignSecretProblem, type OwnCertificate } from './own-certificate.ts';
import { nextStep, withNext } from './rotation.ts';
import { type CertificateStores, type ConfigurationView, madeByServerLabel, type SecretView } from './stores.ts';

export interface CertificateReconcilerOptions {
  /** Writes only while this process leads. */
  readonly client: Client;
  readonly stores: CertificateStores;
  readonly secret: ObjectName & { readonly namespace: string };
  readonly certificate: OwnCertificate;
  /** DNS names and IPv4 addresses of the certificate. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Does the first step that is due: fill the Secret, update the configurations, or advance a
 * rotation, so that every configuration trusts the certificate before the Secret changes again. Its
 * one key is the Secret's. Rejects with CodedError `ForeignSecret`, or as the client does.
 */
export class CertificateReconciler implements Reconciler {
  readonly #options: CertificateReconcilerOptions;
  /** The certificate and bundle that all configurations trust, without interruption since then. */
  #trusted: { readonly content: string; readonly sinceMs: number } | undefined;

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const { secret, stores } = this.#options;
    const stored = stores.secret.get(keyOf(secret));
    if (!stored) return this.#create(signal);
    if (!stored.ours) throw new CodedError('ForeignSecret', `Secret ${keyOf(secret)}: ${foreignSecretProblem}`);
    const { material, problem = '' } = stored;
    if (!material) {
      return this.#write(stored, toData(this.#replacementMaterial()), `the Secret is unusable: ${problem}`, signal);
    }
    const earlier = this.#earlierAuthority(material);
    if (earlier !== undefined) {
      const data = toData({ ...material, previousAuthority: earlier });
      return this.#write(stored, data, 'replicas with a certificate from files may still run', signal);
    }
    const bundle = trustBundle(material);
    const outdated = this.#outdated(bundle);
    if (outdated.length > 0) {
      this.#trusted = undefined;
      await Promise.all(outdated.map((configuration) => this.#writeConfiguration(configuration, bundle, signal)));
      // The next step may rely only on what the watch of the configurations reports.
      return done;
    }
    return this.#advance(stored, material, signal);
  }

  /**
   * What replicas with certificates in files may still serve, after a change to
   * `--certificates=own`. It stays trusted until a configuration has our authority.
   */
  #earlierAuthority({ authority, previousAuthority }: Material): string | undefined {
    const endpoints = this.#endpoints();
    if (endpoints.some(({ caBundle }) => caBundle.includes(authority))) return undefined;
    const [earlier] = endpoints.flatMap(({ caBundle }) => authorityIn(caBundle) ?? []);
    return earlier === previousAuthority ? undefined : earlier;
  }

  async #advance(stored: SecretView, material: Material, signal: AbortSignal): Promise<Result> {
    const { clock, names } = this.#options;
    const content = `${material.pair.cert}${trustBundle(material)}`;
    if (this.#trusted?.content !== content) this.#trusted = { content, sinceMs: clock.monotonic() };
    const trustedForMs = clock.monotonic() - this.#trusted.sinceMs;
    const step = nextStep(material, { names, nowMs: clock.now(), trustedForMs });
    if (step.kind === 'store') return this.#write(stored, toData(step.material), step.why, signal);
    return after(step.delayMs);
  }

  /**
   * A shared certificate stays until all trust a successor, so an administrator can delete the
   * Secret.
   */
  #replacementMaterial(): Material {
    const { certificate, clock, names } = this.#options;
    return certificate.shared ? withNext(certificate.material, names, clock.now()) : certificate.material;
  }

  async #create(signal: AbortSignal): Promise<Result> {
    const { client, log, secret } = this.#options;
    const object: KubeObject = {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: {
        ...secret,
        labels: { ...ownLabels, [madeByServerLabel]: 'true' },
      },
      type: 'kubernetes.io/tls',
      data: Object.fromEntries(
        Object.entries(toData(this.#replacementMaterial())).filter(([, value]) => value !== null),
      ),
    };
    try {
      await client.create(secrets, object, { signal });
      log.info('serving certificate created', { secret: keyOf(secret) });
    } catch (error) {
      // Another replica created the Secret; its watch reports the content.
      if (!isAlreadyExists(error)) throw error;
    }
    return done;
  }

  async #write(
    { resourceVersion }: SecretView,
    data: Record<string, string | null>,
    why: string,
    signal: AbortSignal,
  ): Promise<Result> {
    const { client, log, secret } = this.#options;
    await client.mergePatch(secrets, secret, { metadata: { resourceVersion }, data }, { signal });
    log.info('certificate Secret updated', { secret: keyOf(secret), why });
    return done;
  }

  #endpoints(): ConfigurationView['endpoints'] {
    return this.#options.stores.configurations.flatMap((store) =>
      [...store.list()].flatMap(({ endpoints }) => endpoints),
    );
  }

  #outdated(bundle: string): OutdatedConfiguration[] {
    return this.#options.stores.configurations.flatMap((store) =>
      [...store.list()].flatMap((view) =>
        view.endpoints.every(({ caBundle }) => caBundle === bundle) ? [] : [{ store, view }],
      ),
    );
  }

  async #writeConfiguration(
    { store, view }: OutdatedConfiguration,
    bundle: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { resource } = store;
    const { name, endpoints } = view;
    const value = Buffer.from(bundle).toString('base64');
    const ops = endpoints
      .filter(({ caBundle }) => caBundle !== bundle)
      .flatMap(({ pointer, namePointer, name: webhook }) => [
        // A list of webhooks may have changed since it was read.
        { op: 'test' as const, path: namePointer, value: webhook },
        { op: 'add' as const, path: `${pointer}/caBundle`, value },
      ]);
    await this.#options.client.jsonPatch(resource, { name }, ops, { signal });
    this.#options.log.info('caBundle updated', { kind: resource.kind, name });
  }
}

/** Its caBundle is not current. */
interface OutdatedConfiguration {
  readonly store: Store<ConfigurationView>;
  readonly view: ConfigurationView;
}
