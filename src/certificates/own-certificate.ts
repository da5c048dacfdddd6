import { keyOf, type ObjectName } from '../api/object.ts';
import { type Clock, formatTime } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { expiryProblem, type KeyPair } from '../kit/key-pair.ts';
import type { StoreEvent } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { type Material, newSignedPair } from './material.ts';
import { type CertificateStores, madeByServerLabel, type SecretView } from './stores.ts';

interface OwnCertificateOptions {
  readonly stores: CertificateStores;
  readonly secret: ObjectName;
  /** DNS names and IPv4 addresses of a certificate that the server creates. */
  readonly names: readonly string[];
  /** Only the leader writes the webhook configurations. */
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with each new pair from the Secret. */
  readonly onServing?: (pair: KeyPair) => void;
}

/**
 * The serving certificate that the replicas share through a Secret: the leader writes it, every
 * replica watches it. Before that, a replica serves an untrusted pair and is not ready.
 */
export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  readonly #unsubscribe: () => void;
  #material: Material;
  #shared = false;
  /** If so, one configuration without its authority must not stop the other webhooks. */
  #wasReady = false;
  #secretProblem = 'it does not exist yet; see the log of the leader';
  #listener: (pair: KeyPair) => void = () => {};

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
    this.#material = newSignedPair(options.names, options.clock.now());
    this.#unsubscribe = options.stores.secret.subscribe((event) => this.#onSecretEvent(event));
  }

  get current(): KeyPair {
    return this.#material.pair;
  }

  /** From the Secret; before that, what the leader may write into it. */
  get material(): Material {
    return this.#material;
  }

  /** The material comes from the Secret, so other replicas serve it too. */
  get shared(): boolean {
    return this.#shared;
  }

  /** First the current pair, then each new one; if the listener throws, the previous one stays. */
  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    listener(this.current);
  }

  close(): void {
    this.#unsubscribe();
    this.#listener = () => {};
  }

  /**
   * A readiness check. Until first ready, the leader needs the trust of every configuration.
   * Otherwise one suffices: in an upgrade, an earlier version's leader does not write new ones.
   */
  readonly problem = (): string | undefined => {
    const { clock, secret, stores } = this.#options;
    const name = `Secret ${keyOf(secret)}`;
    if (!this.#shared) {
      return stores.secret.synced ? `${name}: ${this.#secretProblem}` : `${name} could not be read yet; see the log`;
    }
    return expiryProblem(this.current, clock.now()) ?? this.#trustProblem();
  };

  #trustProblem(): string | undefined {
    const { leads, stores } = this.#options;
    const configurations = stores.configurations.flatMap((store) => [...store.list()]);
    const authority = this.#material.authority;
    const distrusting = configurations.filter(({ endpoints }) =>
      endpoints.some(({ caBundle }) => !caBundle.includes(authority)),
    );
    if (configurations.length === 0) return undefined;
    const mayLackSome = this.#wasReady || !leads();
    if (mayLackSome ? distrusting.length < configurations.length : distrusting.length === 0) {
      this.#wasReady = true;
      return undefined;
    }
    return `caBundle does not contain the authority of the serving certificate yet: ${distrusting.map(({ name }) => name).join(', ')}`;
  }

  #onSecretEvent(event: StoreEvent<SecretView>): void {
    const { log, secret } = this.#options;
    const field = { secret: keyOf(secret) };
    if (event.type === 'deleted') {
      this.#secretProblem = 'it was deleted';
      log.warn(
        'the Secret of the serving certificate was deleted; the current certificate stays in use, and the leader creates the Secret again',
        field,
      );
      return;
    }
    const { ours, material, problem = '' } = event.now;
    if (ours && material) {
      this.#adopt(material);
      return;
    }
    this.#secretProblem = ours ? problem : foreignSecretProblem;
    const next = ours ? ', and the leader replaces the data of the Secret' : '';
    log.error(`the Secret of the serving certificate is unusable; the current certificate stays in use${next}`, {
      ...field,
      error: this.#secretProblem,
    });
  }

  #adopt(material: Material): void {
    const { log, onServing, secret } = this.#options;
    const { pair } = material;
    const changed = !this.#shared || !pair.cert.equals(this.current.cert) || !pair.key.equals(this.current.key);
    try {
      if (changed) this.#listener(pair);
    } catch (error) {
      this.#secretProblem = describe(error);
      log.error('the new serving certificate in the Secret is unusable; the previous one stays in use', {
        secret: keyOf(secret),
        error: this.#secretProblem,
      });
      return;
    }
    this.#material = material;
    this.#shared = true;
    if (!changed) return;
    onServing?.(pair);
    log.info('serving certificate loaded', { expiresAt: formatTime(pair.expiresAtMs) });
  }
}

/** For a Secret that the server did not create. */
export const foreignSecretProblem = `the server did not create it (label ${madeByServerLabel} is missing); if no other program uses it, delete it, and the server creates a new one; otherwise, choose another name with --certificate-secret`;
