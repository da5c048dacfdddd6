import { randomBytes } from 'node:crypto';
import type { KubeObject } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { secrets } from '../../api/resources.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isAlreadyExists } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { KeyRing, SigningKeys } from './signer.ts';

export const keySecretName = 'drawbridge-signing-keys';

const KEY_BYTES = 32;
const rereadMs = 30_000;
const retryMs = 1000;

/** The keys that all replicas share, in a Secret that the first of them makes. What it holds is never logged. */
export class KeySecret implements KeyRing {
  readonly #deps: { readonly client: Client; readonly namespace: string; readonly clock: Clock; readonly log: Log };
  #keys: SigningKeys | undefined;
  #problem = 'not read yet';

  constructor(deps: { client: Client; namespace: string; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  get keys(): SigningKeys | undefined {
    return this.#keys;
  }

  /** Why there are no keys, in one line; undefined when there are. */
  problem(): string | undefined {
    return this.#keys ? undefined : `Secret ${this.#deps.namespace}/${keySecretName}: ${this.#problem}`;
  }

  /**
   * Reads the keys, makes them if there are none, and reads them again every 30 s, until `signal` aborts. Resolves after the first
   * attempt, whatever came of it; never rejects.
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#attempt(signal);
    void this.#keepReading(signal);
  }

  async #keepReading(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#deps.clock, this.#keys ? rereadMs : retryMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.#attempt(signal);
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    try {
      await this.refresh(signal);
    } catch (error) {
      this.#problem = describe(error);
      if (signal.aborted) return;
      this.#deps.log.error('signing keys not read', { error: this.#problem, inUse: this.#keys !== undefined });
    }
  }

  /** Keys that were read once stay in use when the Secret is gone or holds none. Rejects when the API does not answer. */
  async refresh(signal?: AbortSignal): Promise<void> {
    const secret = await this.#read(signal);
    const keys = secret && readKeys(secret);
    if (keys) this.#keys = keys;
    else if (this.#keys) this.#deps.log.error('signing keys are gone from their Secret; those read before stay in use');
    else
      throw new CodedError('InvalidSigningKeys', `data.current must be at least ${KEY_BYTES} random bytes in base64`);
  }

  async #read(signal?: AbortSignal): Promise<KubeObject | undefined> {
    const { client, namespace } = this.#deps;
    const options = signal ? { signal } : {};
    const name = { namespace, name: keySecretName };
    const found = await findObject(client, secrets, name, options);
    // New keys would void every open grant.
    if (found || this.#keys) return found;
    try {
      return await client.create(secrets, newSecret(namespace), options);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return client.get(secrets, name, options);
    }
  }
}

const newKey = (): string => randomBytes(KEY_BYTES).toString('base64');

const newSecret = (namespace: string): KubeObject => ({
  apiVersion: 'v1',
  kind: secrets.kind,
  metadata: { name: keySecretName, namespace, labels: { ...ownLabels } },
  type: 'Opaque',
  data: { current: newKey(), previous: newKey() },
});

/** The keys of the Secret; undefined when the current one is missing or too short. A previous one that is unusable counts as absent. */
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
