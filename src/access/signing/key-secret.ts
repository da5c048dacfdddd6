import { randomBytes } from 'node:crypto';
import { apiVersionOf, type KubeObject } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { configMaps, secrets } from '../../api/resources.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { DerivedKeyPair } from '../../kit/ed25519.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import { createOrPatchConfigMap } from './config-map.ts';

/** Secret keys of at least 32 bytes. `current` signs; signatures by `previous` still verify. */
export interface SigningKeys {
  readonly current: Uint8Array;
  readonly previous?: Uint8Array;
}

/** The source of the signing keys. */
export interface KeyRing {
  /** Undefined until the first successful read. */
  readonly keys: SigningKeys | undefined;
}

/** Annotation of the ConfigMap with the public keys: the uid of the Secret with the keys in use. */
const secretUidAnnotation = 'keys.drawbridge.dev/secret-uid';

/** Size of a new key, and minimum size of an accepted one, in bytes. */
const KEY_BYTES = 32;
/** Interval between reads until there are keys, milliseconds. */
const retryMs = 1000;

/** Which Secret holds the keys, and what they are for. */
export interface KeySecretOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Name of the Secret, and of the ConfigMap with its public keys. */
  readonly name: string;
  /** With each key, the server derives an Ed25519 key pair from this text. */
  readonly purpose: string;
  /** Whether to use a Secret even without proof that this installation used its keys before: `--adopt-signing-keys`. */
  readonly adopt: boolean;
  /** Interval between reads once there are keys, milliseconds. */
  readonly rereadMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The keys that all replicas share, in a Secret that the first replica creates. The server never logs them.
 *
 * Anyone who can create Secrets in the namespace could store known keys there before the first start. So a replica uses a Secret only if
 * the ConfigMap of the same name has its uid or one of its public keys. A Secret that the replica itself created needs no proof. With the
 * option `adopt`, no Secret needs one. Replicas publish the public keys of a new Secret before they create it, and then keep the ConfigMap
 * equal to the keys in use. So a replica accepts rotated keys by the uid of the Secret, and a restored Secret by its public keys.
 */
export class KeySecret implements KeyRing {
  readonly #deps: KeySecretOptions;
  #keys: SigningKeys | undefined;
  /** uid of the Secret with `#keys`. */
  #uid = '';
  /** Keys that this replica generated for a Secret that does not exist yet. */
  #newKeys: Required<SigningKeys> | undefined;
  /** uid of the Secret that this replica created; empty if it created none. */
  #createdUid = '';
  #problem = 'not read yet';

  constructor(deps: KeySecretOptions) {
    this.#deps = deps;
  }

  get keys(): SigningKeys | undefined {
    return this.#keys;
  }

  /** Why there are no keys, in one line; undefined if there are keys, even if later reads fail. */
  problem(): string | undefined {
    const { namespace, name } = this.#deps;
    return this.#keys ? undefined : `Secret ${namespace}/${name}: ${this.#problem}`;
  }

  /**
   * Reads the keys every `rereadMs` (every 1 s until there are keys) until `signal` aborts. Until there are keys, creates the Secret if it is
   * missing. Resolves after the first attempt, successful or not. Never rejects.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#attempt(signal);
    void this.#keepReading(signal);
  }

  async #keepReading(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#deps.clock, this.#keys ? this.#deps.rereadMs : retryMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.#attempt(signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    try {
      await this.refresh(signal);
      // Verifiers trust the public keys in the ConfigMap, so restore them if another client changed them.
      if (this.#keys) await this.#publish(this.#keys, this.#uid, { signal });
      this.#problem = '';
    } catch (error) {
      const problem = describe(error);
      const isNew = problem !== this.#problem;
      this.#problem = problem;
      if (signal.aborted || !isNew) return;
      log.error(
        'cannot read or create the Secret of the signing keys, or cannot publish its public keys in the ConfigMap of the same name',
        { ...this.#logFields, error: problem, inUse: this.#keys !== undefined },
      );
    }
  }

  /**
   * Reads the Secret, and publishes its public keys in the ConfigMap. With earlier keys, a Secret that is missing or not accepted changes
   * nothing. Without earlier keys, creates a missing Secret, and rejects with `InvalidSigningKeys` if the Secret is not accepted. Rejects
   * as the client does if a call fails; the earlier keys then stay in use.
   */
  async refresh(signal?: AbortSignal): Promise<void> {
    const options = signal ? { signal } : {};
    const { client } = this.#deps;
    const secret = (await findObject(client, secrets, this.#name, options)) ?? (await this.#create(options));
    const keys = secret && (await this.#acceptedKeys(secret, options));
    if (keys === undefined || typeof keys === 'string') {
      const problem = keys ?? missingSecret;
      if (!this.#keys) throw new CodedError('InvalidSigningKeys', problem);
      this.#deps.log.error(
        'cannot use the Secret of the signing keys; this replica continues to use the keys that it read before',
        { ...this.#logFields, error: problem },
      );
      return;
    }
    const uid = secret?.metadata.uid ?? '';
    if (isSame(keys, this.#keys) && uid === this.#uid) return;
    await this.#publish(keys, uid, options);
    this.#keys = keys;
    this.#uid = uid;
  }

  /**
   * Creates the Secret with new keys, and resolves to it, or to the one that another replica has created meanwhile. If keys are in use,
   * does nothing and resolves to undefined: new keys would invalidate what the keys in use signed.
   */
  async #create(options: { signal?: AbortSignal }): Promise<KubeObject | undefined> {
    if (this.#keys) return undefined;
    const { client } = this.#deps;
    // Every attempt uses the same keys, so that the ConfigMap does not grow while the Secret cannot be stored.
    this.#newKeys ??= { current: randomBytes(KEY_BYTES), previous: randomBytes(KEY_BYTES) };
    const keys = this.#newKeys;
    // Publish the public keys first. Otherwise, if the replica stops in between, no replica accepts the Secret. Public keys of a Secret
    // that was never created do no harm.
    await createOrPatchConfigMap(client, this.#name, { data: this.#publicKeys(keys) }, options);
    try {
      const created = await client.create(secrets, this.#newSecret(keys), options);
      this.#createdUid = created.metadata.uid ?? '';
      return created;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return client.get(secrets, this.#name, options);
    }
  }

  /** The keys of the Secret if the server accepts them, else the problem. */
  async #acceptedKeys(secret: KubeObject, options: { signal?: AbortSignal }): Promise<SigningKeys | string> {
    const { client, adopt } = this.#deps;
    const keys = readKeys(secret);
    if (!keys) return `data.current must be at least ${KEY_BYTES} random bytes in base64; ${restoreOrReplace}`;
    const { uid } = secret.metadata;
    if (adopt || uid === this.#createdUid || (uid === this.#uid && isSame(keys, this.#keys))) return keys;
    const configMap = await findObject(client, configMaps, this.#name, options);
    const wereUsed =
      (uid !== undefined && configMap?.metadata.annotations?.[secretUidAnnotation] === uid) ||
      Object.keys(this.#publicKeys(keys)).some((publicKey) => own(own(configMap, 'data'), publicKey) !== undefined);
    return wereUsed ? keys : unprovenSecret;
  }

  /** Updates the ConfigMap, if necessary, so that it has exactly these public keys and the uid of their Secret. */
  async #publish(keys: SigningKeys, uid: string, options: { signal?: AbortSignal }): Promise<void> {
    const { client, log, namespace, name } = this.#deps;
    const configMap = await findObject(client, configMaps, this.#name, options);
    const published = own(configMap, 'data');
    const publicKeys = this.#publicKeys(keys);
    const surplus = Object.keys(isRecord(published) ? published : {}).filter((publicKey) => !(publicKey in publicKeys));
    const missing = Object.entries(publicKeys).filter(([publicKey, use]) => own(published, publicKey) !== use);
    const isUidPublished = configMap?.metadata.annotations?.[secretUidAnnotation] === uid;
    if (surplus.length === 0 && missing.length === 0 && isUidPublished) return;
    await createOrPatchConfigMap(
      client,
      this.#name,
      {
        metadata: { annotations: { [secretUidAnnotation]: uid } },
        data: { ...Object.fromEntries(surplus.map((publicKey) => [publicKey, null])), ...publicKeys },
      },
      options,
    );
    log.info('published the public keys in the ConfigMap', {
      namespace,
      configMap: name,
      keys: Object.keys(publicKeys),
    });
  }

  /** Entries of the ConfigMap: from the public key in base64url to `current` or `previous`. */
  #publicKeys({ current, previous }: SigningKeys): Record<string, string> {
    const publicKey = (key: Uint8Array): string =>
      new DerivedKeyPair(key, this.#deps.purpose).publicKey.toString('base64url');
    return { ...(previous ? { [publicKey(previous)]: 'previous' } : {}), [publicKey(current)]: 'current' };
  }

  #newSecret({ current, previous }: Required<SigningKeys>): KubeObject {
    return {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: { ...this.#name, labels: { ...ownLabels } },
      type: 'Opaque',
      data: { current: Buffer.from(current).toString('base64'), previous: Buffer.from(previous).toString('base64') },
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
  'restore the earlier Secret from a backup or, if there is none, delete the Secret and restart the server, which creates new keys; what the earlier keys ' +
  'signed, the heads of the audit journal, then becomes invalid';

const missingSecret =
  'the Secret does not exist; restore it from a backup before a replica restarts: a replica that starts without it creates new keys, and what the earlier ' +
  'keys signed, the heads of the audit journal, then becomes invalid';

const unprovenSecret =
  'nothing proves that this installation used the keys in the Secret, so another client may know them; if you created the Secret, start the server with ' +
  `--adopt-signing-keys=true (signingKeys.adopt of the chart); otherwise, ${restoreOrReplace}`;

/** The keys of the Secret; undefined if the current one is missing or too short. An unusable previous key counts as absent. */
export function readKeys(secret: KubeObject): SigningKeys | undefined {
  const data = own(secret, 'data');
  const [current, previous] = [keyOf(own(data, 'current')), keyOf(own(data, 'previous'))];
  if (!current) return undefined;
  return previous ? { current, previous } : { current };
}

function keyOf(text: unknown): Uint8Array | undefined {
  const key = typeof text === 'string' ? Buffer.from(text, 'base64') : undefined;
  return key && key.length >= KEY_BYTES ? key : undefined;
}

const isSame = (keys: SigningKeys, before: SigningKeys | undefined): boolean =>
  before !== undefined && isEqual(keys.current, before.current) && isEqual(keys.previous, before.previous);

const isEqual = (a: Uint8Array = new Uint8Array(), b: Uint8Array = new Uint8Array()): boolean =>
  Buffer.compare(a, b) === 0;
