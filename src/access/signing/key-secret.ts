import { randomBytes } from 'node:crypto';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { DerivedKeyPair } from '../../kit/ed25519.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { isRecord, own, sameJson } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import { createOrPatchConfigMap } from './config-map.ts';

/** Annotation of the ConfigMap with the public key: the uid of the Secret with the key in use. */
const secretUidAnnotation = 'keys.drawbridge.dev/secret-uid';

/** Size of a new key, and minimum size of an accepted one, in bytes. */
const KEY_BYTES = 32;
/** Between reads until there is a key. */
const retryMs = 1000;

export interface KeySecretOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Of the Secret, and of the ConfigMap with its public key. */
  readonly name: string;
  /** The server derives an Ed25519 key pair from the key and this text. */
  readonly purpose: string;
  /** Use a Secret without proof that this installation used it before: `--adopt-signing-keys`. */
  readonly adopt: boolean;
  /** Between reads once there is a key. */
  readonly rereadMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The key that all replicas share, in a Secret that the first replica creates. Never logged.
 * Others could store a known key there before the first start, so a replica uses a Secret only if
 * the ConfigMap of the same name has its uid (a rotation) or its public key (a restore), except
 * its own and, with `adopt`, any. It publishes the public key before it creates the Secret.
 */
export class KeySecret {
  readonly #deps: KeySecretOptions;
  #key: Uint8Array | undefined;
  /** Of the Secret with `#key`. */
  #uid = '';
  /** For a Secret that does not exist yet. */
  #newKey: Uint8Array | undefined;
  /** Of the Secret that this replica created. */
  #createdUid = '';
  #problem = 'not read yet';

  constructor(deps: KeySecretOptions) {
    this.#deps = deps;
  }

  /** At least 32 bytes; undefined until the first successful read. */
  get key(): Uint8Array | undefined {
    return this.#key;
  }

  /** Why there is no key, in one line; undefined if there is one, even if later reads fail. */
  problem(): string | undefined {
    const { namespace, name } = this.#deps;
    return this.#key ? undefined : `Secret ${namespace}/${name}: ${this.#problem}`;
  }

  /**
   * Reads the Secret every `rereadMs` until `signal` aborts; until there is a key, every second, and
   * creates a missing one. Resolves after the first attempt, successful or not. Never rejects.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#attempt(signal);
    void this.#keepReading(signal);
  }

  async #keepReading(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#deps.clock, this.#key ? this.#deps.rereadMs : retryMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.#attempt(signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    try {
      await this.refresh(signal);
      // Verifiers trust the ConfigMap, so restore it if another client changed it.
      if (this.#key) await this.#publish(this.#key, this.#uid, { signal });
      this.#problem = '';
    } catch (error) {
      const problem = describe(error);
      const isNew = problem !== this.#problem;
      this.#problem = problem;
      if (signal.aborted || !isNew) return;
      log.error(
        'cannot read or create the Secret of the signing key, or cannot publish its public key in the ConfigMap of the same name',
        { ...this.#logFields, error: problem, inUse: this.#key !== undefined },
      );
    }
  }

  /**
   * With an earlier key, a Secret that is missing or not accepted changes nothing. Without one,
   * creates a missing Secret, and rejects with `InvalidSigningKeys` if it is not accepted. Rejects
   * as the client does if a call fails; an earlier key then stays in use.
   */
  async refresh(signal?: AbortSignal): Promise<void> {
    const options = signal ? { signal } : {};
    const { client } = this.#deps;
    const secret = (await findObject(client, secrets, this.#name, options)) ?? (await this.#create(options));
    const key = secret && (await this.#acceptedKey(secret, options));
    if (key === undefined || typeof key === 'string') {
      const problem = key ?? missingSecret;
      if (!this.#key) throw new CodedError('InvalidSigningKeys', problem);
      this.#deps.log.error(
        'cannot use the Secret of the signing key; this replica continues to use the key that it read before',
        { ...this.#logFields, error: problem },
      );
      return;
    }
    const uid = secret?.metadata.uid ?? '';
    if (this.#isInUse(key) && uid === this.#uid) return;
    await this.#publish(key, uid, options);
    this.#key = key;
    this.#uid = uid;
  }

  #isInUse(key: Uint8Array): boolean {
    return this.#key !== undefined && Buffer.compare(key, this.#key) === 0;
  }

  /**
   * Or resolves to the Secret that another replica has created meanwhile, and to undefined if a key
   * is in use: a new one would invalidate what it signed.
   */
  async #create(options: { signal?: AbortSignal }): Promise<KubeObject | undefined> {
    if (this.#key) return undefined;
    const { client } = this.#deps;
    // The same for every attempt, so that the ConfigMap does not grow.
    this.#newKey ??= randomBytes(KEY_BYTES);
    const key = this.#newKey;
    // First, or no replica would accept the Secret of one that stops in between.
    await createOrPatchConfigMap(client, this.#name, { data: this.#published(key) }, options);
    try {
      const created = await client.create(secrets, this.#newSecret(key), options);
      this.#createdUid = created.metadata.uid ?? '';
      return created;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return client.get(secrets, this.#name, options);
    }
  }

  /** The problem, if the server does not accept it. */
  async #acceptedKey(secret: KubeObject, options: { signal?: AbortSignal }): Promise<Uint8Array | string> {
    const { client, adopt } = this.#deps;
    const key = readKey(secret);
    if (!key) return `data.current must be at least ${KEY_BYTES} random bytes in base64; ${restoreOrReplace}`;
    const { uid } = secret.metadata;
    if (adopt || uid === this.#createdUid || (uid === this.#uid && this.#isInUse(key))) return key;
    const configMap = await findObject(client, configMaps, this.#name, options);
    const wasUsed =
      (uid !== undefined && configMap?.metadata.annotations?.[secretUidAnnotation] === uid) ||
      own(own(configMap, 'data'), this.#publicKey(key)) !== undefined;
    return wasUsed ? key : unprovenSecret;
  }

  /** The ConfigMap then has exactly this public key, and the uid of its Secret. */
  async #publish(key: Uint8Array, uid: string, options: { signal?: AbortSignal }): Promise<void> {
    const { client, log, namespace, name } = this.#deps;
    const configMap = await findObject(client, configMaps, this.#name, options);
    const published = own(configMap, 'data');
    const data = this.#published(key);
    const isUidPublished = configMap?.metadata.annotations?.[secretUidAnnotation] === uid;
    if (sameJson(published, data) && isUidPublished) return;
    const surplus = Object.keys(isRecord(published) ? published : {});
    await createOrPatchConfigMap(
      client,
      this.#name,
      {
        metadata: { annotations: { [secretUidAnnotation]: uid } },
        data: { ...Object.fromEntries(surplus.map((publicKey) => [publicKey, null])), ...data },
      },
      options,
    );
    log.info('published the public key in the ConfigMap', { namespace, configMap: name, keys: Object.keys(data) });
  }

  #publicKey(key: Uint8Array): string {
    return new DerivedKeyPair(key, this.#deps.purpose).publicKey.toString('base64url');
  }

  /** The data of the ConfigMap. */
  #published(key: Uint8Array): Record<string, string> {
    return { [this.#publicKey(key)]: 'current' };
  }

  #newSecret(key: Uint8Array): KubeObject {
    return {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: { ...this.#name, labels: { ...ownLabels } },
      type: 'Opaque',
      data: { current: Buffer.from(key).toString('base64') },
    };
  }

  get #logFields() {
    const { namespace, name } = this.#deps;
    return { namespace, secret: name };
  }

  get #name() {
    const { namespace, name } = this.#deps;
    return { namespace, name };
  }
}

const restoreOrReplace =
  'restore the earlier Secret from a backup or, if there is none, delete the Secret and restart the server, which creates a new key; what the earlier one ' +
  'signed, the heads of the audit journal, then becomes invalid';

const missingSecret =
  'the Secret does not exist; restore it from a backup before a replica restarts: a replica that starts without it creates a new key, and what the earlier ' +
  'one signed, the heads of the audit journal, then becomes invalid';

const unprovenSecret =
  'nothing proves that this installation used the key in the Secret, so another client may know it; if you created the Secret, start the server with ' +
  `--adopt-signing-keys=true (signingKeys.adopt of the chart); otherwise, ${restoreOrReplace}`;

/** Undefined if it is missing or too short. */
export function readKey(secret: KubeObject): Uint8Array | undefined {
  const text = own(own(secret, 'data'), 'current');
  const key = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined;
  return key && key.length >= KEY_BYTES ? key : undefined;
}
