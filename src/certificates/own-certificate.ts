import { keyOf, type ObjectName } from '../api/object.ts';
import { type Clock, formatTime } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { expiryOf, type KeyPair } from '../kit/key-pair.ts';
import type { StoreEvent } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { type Material, newTrusted } from './material.ts';
import { type CertificateStores, madeByServerLabel, type SecretView } from './stores.ts';

interface OwnCertificateOptions {
  readonly stores: CertificateStores;
  readonly secret: ObjectName;
  /** What a certificate that is made here serves. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each pair that comes from the Secret. */
  readonly onServing?: (pair: KeyPair) => void;
}

/**
 * The serving certificate that the replicas share through a Secret; every replica follows the Secret, and the leader writes it.
 * Until there is one, a pair is served that nobody trusts, and the replica is not ready.
 */
export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  readonly #unsubscribe: () => void;
  #material: Material;
  #shared = false;
  /** Once readiness has been granted, one broken configuration must not take the others' webhooks away. */
  #wasReady = false;
  #problem = 'it is not there yet';
  #listener: (pair: KeyPair) => void = () => {};

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
    this.#material = newTrusted(options.names, options.clock.now());
    this.#unsubscribe = options.stores.secret.subscribe((event) => this.#follow(event));
  }

  get current(): KeyPair {
    return this.#material.pair;
  }

  /** What was last read from the Secret; before that, what may be put into it. */
  get material(): Material {
    return this.#material;
  }

  /** The material comes from the Secret, so that others may serve it as well. */
  get shared(): boolean {
    return this.#shared;
  }

  /** Calls back with the pair at hand, which may be newer than what was read from `current`, and with each new one until `close`. */
  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    listener(this.current);
  }

  close(): void {
    this.#unsubscribe();
    this.#listener = () => {};
  }

  /** A readiness check: the API server could not call this replica, and why, in one line. */
  readonly problem = (): string | undefined => {
    const { clock, secret, stores } = this.#options;
    const name = `Secret ${keyOf(secret)}`;
    if (!this.#shared) {
      return stores.secret.synced ? `${name}: ${this.#problem}` : `${name} could not be read yet; see the log`;
    }
    return expiryOf(this.current, clock.now()) ?? this.#distrust();
  };

  #distrust(): string | undefined {
    const configurations = this.#options.stores.configurations.flatMap((store) => [...store.list()]);
    const authority = this.#material.authority;
    const without = configurations.filter(({ webhooks }) =>
      webhooks.some(({ caBundle }) => !caBundle.includes(authority)),
    );
    if (without.length === 0) {
      if (configurations.length > 0) this.#wasReady = true;
      return undefined;
    }
    if (this.#wasReady && without.length < configurations.length) return undefined;
    return `caBundle does not hold the authority of the serving certificate yet: ${without.map(({ name }) => name).join(', ')}`;
  }

  #follow(event: StoreEvent<SecretView>): void {
    const { log, secret } = this.#options;
    const field = { secret: keyOf(secret) };
    if (event.type === 'deleted') {
      this.#problem = 'it is gone';
      log.warn('the Secret of the serving certificate is gone; the certificate stays in use', field);
      return;
    }
    const { ours, material, problem = '' } = event.now;
    if (ours && material) {
      this.#take(material);
      return;
    }
    this.#problem = ours ? problem : foreign;
    log.error('the Secret of the serving certificate cannot be used', { ...field, error: this.#problem });
  }

  #take(material: Material): void {
    const { log, onServing } = this.#options;
    const { pair } = material;
    const changed = !this.#shared || !pair.cert.equals(this.current.cert) || !pair.key.equals(this.current.key);
    try {
      if (changed) this.#listener(pair);
    } catch (error) {
      this.#problem = describe(error);
      log.error('new serving certificate not usable; keeping the one before', { error: this.#problem });
      return;
    }
    this.#material = material;
    this.#shared = true;
    if (!changed) return;
    onServing?.(pair);
    log.info('serving certificate loaded', { expiresAt: formatTime(pair.expiresAtMs) });
  }
}

/** Why a Secret that somebody else made is left alone. */
export const foreign = `it was not made by the server (label ${madeByServerLabel} is missing); delete it or choose another name with --certificate-secret`;
