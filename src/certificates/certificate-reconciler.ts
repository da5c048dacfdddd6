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
import { type Material, toData, trustBundle } from './material.ts';
import { foreign, type OwnCertificate } from './own-certificate.ts';
import { nextStep, withNext } from './rotation.ts';
import { type CertificateStores, type ConfigurationView, madeByServerLabel, type SecretView } from './stores.ts';

export interface CertificateReconcilerOptions {
  /** The leader's. */
  readonly client: Client;
  readonly stores: CertificateStores;
  readonly secret: ObjectName & { readonly namespace: string };
  readonly certificate: OwnCertificate;
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Keeps the Secret filled, the caBundle of every webhook configuration equal to what the Secret says, and moves a rotation on, in
 * this order: what is in the Secret is trusted before anything else happens to it. One key: the Secret's.
 */
export class CertificateReconciler implements Reconciler {
  readonly #options: CertificateReconcilerOptions;
  /** Since when (monotonic) which pair and bundle have been trusted without a break. */
  #trusted: { readonly what: string; readonly sinceMs: number } | undefined;

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const { secret, stores } = this.#options;
    const stored = stores.secret.get(keyOf(secret));
    if (!stored) return this.#create(signal);
    if (!stored.ours) throw new CodedError('ForeignSecret', `Secret ${keyOf(secret)}: ${foreign}`);
    const { material, problem = '' } = stored;
    if (!material) return this.#write(stored, this.#remade(), `what the Secret held is unusable: ${problem}`, signal);
    const lacking = this.#lacking(trustBundle(material));
    if (lacking.length > 0) {
      this.#trusted = undefined;
      await Promise.all(lacking.map(([store, view]) => this.#inject(store, view, trustBundle(material), signal)));
      // Their watch brings the key back; what follows may only build on what that has told.
      return done;
    }
    return this.#advance(stored, material, signal);
  }

  async #advance(stored: SecretView, material: Material, signal: AbortSignal): Promise<Result> {
    const { clock, names } = this.#options;
    const what = `${material.pair.cert}${trustBundle(material)}`;
    if (this.#trusted?.what !== what) this.#trusted = { what, sinceMs: clock.monotonic() };
    const trustedForMs = clock.monotonic() - this.#trusted.sinceMs;
    const step = nextStep(material, { names, nowMs: clock.now(), trustedForMs });
    if (step.kind === 'wait') return after(step.delayMs);
    return this.#write(stored, step.material, step.why, signal);
  }

  /** Whoever deletes the Secret wants another certificate, not an outage: what is in use stays until its successor is trusted. */
  #remade(): Material {
    const { certificate, clock, names } = this.#options;
    return certificate.shared ? withNext(certificate.material, names, clock.now()) : certificate.material;
  }

  async #create(signal: AbortSignal): Promise<Result> {
    const { client, log, secret } = this.#options;
    const data = Object.entries(toData(this.#remade())).filter(([, value]) => value !== null);
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
      log.info('serving certificate made', { secret: keyOf(secret) });
    } catch (error) {
      // Its watch will tell what it holds.
      if (!isAlreadyExists(error)) throw error;
    }
    return done;
  }

  async #write({ resourceVersion }: SecretView, material: Material, why: string, signal: AbortSignal): Promise<Result> {
    const { client, log, secret } = this.#options;
    await client.mergePatch(secrets, secret, { metadata: { resourceVersion }, data: toData(material) }, { signal });
    log.info('serving certificate changed', { secret: keyOf(secret), why });
    return done;
  }

  #lacking(bundle: string): [Store<ConfigurationView>, ConfigurationView][] {
    return this.#options.stores.configurations.flatMap((store) =>
      [...store.list()]
        .filter(({ webhooks }) => webhooks.some(({ caBundle }) => caBundle !== bundle))
        .map((view): [Store<ConfigurationView>, ConfigurationView] => [store, view]),
    );
  }

  async #inject(
    { resource }: Store<ConfigurationView>,
    { name, webhooks }: ConfigurationView,
    bundle: string,
    signal: AbortSignal,
  ): Promise<void> {
    const value = Buffer.from(bundle).toString('base64');
    const ops = webhooks.flatMap((webhook, index) =>
      webhook.caBundle === bundle
        ? []
        : [
            // The list may have changed since we read it.
            { op: 'test' as const, path: `/webhooks/${index}/name`, value: webhook.name },
            { op: 'add' as const, path: `/webhooks/${index}/clientConfig/caBundle`, value },
          ],
    );
    await this.#options.client.jsonPatch(resource, { name }, ops, { signal });
    this.#options.log.info('caBundle written', { kind: resource.kind, name });
  }
}
