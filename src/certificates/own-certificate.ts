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
  /** Whether this replica leads now. Only the leader writes the webhook configurations. */
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with the first pair that is read from the Secret, and with each other pair that follows. */
  readonly onServing?: (pair: KeyPair) => void;
}

/**
 * The serving certificate that the replicas share through a Secret. The leader writes the Secret; every replica watches it. Until a replica
 * has read a pair from the Secret, it serves one that no client trusts yet, and is not ready.
 */
export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  readonly #unsubscribe: () => void;
  #material: Material;
  #shared = false;
  /** Whether this replica was ready before. If so, one configuration without its authority must not stop the other webhooks. */
  #wasReady = false;
  #secretProblem = 'it does not exist yet; see the log of the leader';
  #listener: (pair: KeyPair) => void = () => {};

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
    this.#material = newSignedPair(options.names, options.clock.now());
    this.#unsubscribe = options.stores.secret.subscribe((event) => this.#onSecretEvent(event));
  }

  /** The pair to serve. */
  get current(): KeyPair {
    return this.#material.pair;
  }

  /** The material last read from the Secret; before that, material that the leader may write into it. */
  get material(): Material {
    return this.#material;
  }

  /** Whether the material comes from the Secret, so that other replicas serve it too. */
  get shared(): boolean {
    return this.#shared;
  }

  /**
   * Calls back with the current pair, which may be newer than the value read from `current`, and with each new pair until `close`. If the
   * listener throws on a new pair, the server logs that and keeps the previous pair.
   */
  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    listener(this.current);
  }

  close(): void {
    this.#unsubscribe();
    this.#listener = () => {};
  }

  /**
   * A readiness check: why the API server could not call this replica, in one line. Until it was ready once, the leader is ready only if
   * every configuration trusts its certificate. After that, and for other replicas, one such configuration suffices: during an upgrade, a
   * leader of the earlier version does not write the configurations that are new, and the rollout keeps that leader until a new replica is
   * ready.
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

/** Why the server does not use a Secret that it did not create. */
export const foreignSecretProblem = `the server did not create it (label ${madeByServerLabel} is missing); if no other program uses it, delete it, and the server creates a new one; otherwise, choose another name with --certificate-secret`;
