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
import { newSegment, type PathSegment, segmentData, splitPath, upgradeDelayMs } from './path-segment.ts';
import { nextStep, propagationMs, withNext } from './rotation.ts';
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
  /** The segment in the Secret, and when this replica first saw it. */
  #knownSegment: { readonly segment: string; readonly sinceMs: number } | undefined;

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const { secret, stores } = this.#options;
    const stored = stores.secret.get(keyOf(secret));
    if (!stored) return this.#create(signal);
    if (!stored.ours) throw new CodedError('ForeignSecret', `Secret ${keyOf(secret)}: ${foreignSecretProblem}`);
    const { material, problem = '', segment } = stored;
    if (!material) {
      return this.#write(stored, toData(this.#replacementMaterial()), `the Secret is unusable: ${problem}`, signal);
    }
    if (!segment) {
      const data = segmentData(newSegment(this.#options.clock.now(), this.#areUnsegmented()));
      return this.#write(stored, data, 'the Secret has no path segment', signal);
    }
    const earlier = this.#earlierAuthority(material);
    if (earlier !== undefined) {
      const data = {
        ...toData({ ...material, previousAuthority: earlier }),
        ...segmentData(newSegment(this.#options.clock.now(), true)),
      };
      return this.#write(stored, data, 'replicas with a certificate from files may still run', signal);
    }
    const wanted = this.#wanted(material, segment);
    const outdated = this.#outdated(wanted);
    if (outdated.length > 0) {
      if (outdated.some(({ hasBundle }) => !hasBundle)) this.#trusted = undefined;
      await Promise.all(outdated.map((configuration) => this.#writeConfiguration(configuration, wanted, signal)));
      // The next step may rely only on what the watch of the configurations reports.
      return done;
    }
    return this.#advance(stored, material, segment, signal);
  }

  /**
   * What replicas with certificates in files may still serve, after a change to
   * `--certificates=own`. It stays trusted until a configuration has our authority or a segment.
   */
  #earlierAuthority({ authority, previousAuthority }: Material): string | undefined {
    const endpoints = this.#endpoints();
    if (endpoints.some(({ caBundle, path = '' }) => caBundle.includes(authority) || splitPath(path).segment !== ''))
      return undefined;
    const [earlier] = endpoints.flatMap(({ caBundle }) => authorityIn(caBundle) ?? []);
    return earlier === previousAuthority ? undefined : earlier;
  }

  async #advance(stored: SecretView, material: Material, segment: PathSegment, signal: AbortSignal): Promise<Result> {
    const { clock, names } = this.#options;
    const content = `${material.pair.cert}${trustBundle(material)}`;
    if (this.#trusted?.content !== content) this.#trusted = { content, sinceMs: clock.monotonic() };
    const trustedForMs = clock.monotonic() - this.#trusted.sinceMs;
    const step = nextStep(material, { names, nowMs: clock.now(), trustedForMs });
    if (step.kind === 'store') return this.#write(stored, toData(step.material), step.why, signal);
    // A delay of 0 means that the paths already have the segment.
    return after(Math.min(step.delayMs, this.#segmentDelayMs(segment) || step.delayMs));
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
    const { certificate, client, log, secret } = this.#options;
    // During an upgrade, a deleted Secret must not end the time in which paths have no segment.
    const segment = newSegment(this.#options.clock.now(), certificate.shared && this.#areUnsegmented());
    const data = Object.entries({ ...toData(this.#replacementMaterial()), ...segmentData(segment) }).filter(
      ([, value]) => value !== null,
    );
    const object: KubeObject = {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: {
        ...secret,
        labels: { ...ownLabels, [madeByServerLabel]: 'true' },
      },
      type: 'kubernetes.io/tls',
      data: Object.fromEntries(data),
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

  /** One for each path; empty without one. */
  #segments(): string[] {
    return this.#endpoints().flatMap(({ path }) => (path === undefined ? [] : splitPath(path).segment));
  }

  /** Then replicas that answer only paths without a segment may still run. */
  #areUnsegmented(): boolean {
    return this.#segments().every((segment) => segment === '');
  }

  /** A segment that replaces another one waits 10 s, for the watches of the other replicas. */
  #segmentDelayMs(segment: PathSegment): number {
    const { clock } = this.#options;
    const nowMs = clock.monotonic();
    if (this.#knownSegment?.segment !== segment.text) this.#knownSegment = { segment: segment.text, sinceMs: nowMs };
    const replaces = this.#segments().some((existing) => existing !== '' && existing !== segment.text);
    const replacementDelayMs = replaces ? Math.max(0, this.#knownSegment.sinceMs + propagationMs - nowMs) : 0;
    return Math.max(upgradeDelayMs(segment, clock.now()), replacementDelayMs);
  }

  #wanted(material: Material, segment: PathSegment): Wanted {
    const isSegmentDue = this.#segmentDelayMs(segment) === 0;
    return {
      bundle: trustBundle(material),
      pathOf: (path) => (isSegmentDue && path ? `${splitPath(path).route}/${segment.text}` : path),
    };
  }

  #outdated({ bundle, pathOf }: Wanted): OutdatedConfiguration[] {
    return this.#options.stores.configurations.flatMap((store) =>
      [...store.list()].flatMap((view) => {
        const hasBundle = view.endpoints.every(({ caBundle }) => caBundle === bundle);
        return hasBundle && view.endpoints.every(({ path }) => path === pathOf(path))
          ? []
          : [{ store, view, hasBundle }];
      }),
    );
  }

  async #writeConfiguration(
    { store, view }: OutdatedConfiguration,
    { bundle, pathOf }: Wanted,
    signal: AbortSignal,
  ): Promise<void> {
    const { resource } = store;
    const { name, endpoints } = view;
    const value = Buffer.from(bundle).toString('base64');
    const ops = endpoints.flatMap((endpoint) => {
      const { pointer } = endpoint;
      const path = pathOf(endpoint.path);
      const changes = [
        ...(endpoint.caBundle === bundle ? [] : [{ op: 'add' as const, path: `${pointer}/caBundle`, value }]),
        ...(endpoint.path === path ? [] : [{ op: 'add' as const, path: `${pointer}/service/path`, value: path }]),
      ];
      // A list of webhooks may have changed since it was read.
      const test = { op: 'test' as const, path: endpoint.namePointer, value: endpoint.name };
      return changes.length === 0 ? [] : [test, ...changes];
    });
    await this.#options.client.jsonPatch(resource, { name }, ops, { signal });
    this.#options.log.info('caBundle and paths updated', { kind: resource.kind, name });
  }
}

interface Wanted {
  /** Every trusted authority, PEM. */
  readonly bundle: string;
  /** An empty path, such as that of a webhook with a `url`, stays empty. */
  readonly pathOf: (path: string | undefined) => string | undefined;
}

/** Its caBundle or paths are not current. */
interface OutdatedConfiguration {
  readonly store: Store<ConfigurationView>;
  readonly view: ConfigurationView;
  /** Then only paths change. */
  readonly hasBundle: boolean;
}
