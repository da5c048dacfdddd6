import { keySecretName } from '../access/signing/key-secret.ts';
import { GrantVerifier } from '../access/signing/signer.ts';
import type { RequestView } from '../access/stores/access-views.ts';
import type { ExtensionStatus } from '../api/access/status.ts';
import { type KubeObject, keyOf } from '../api/object.ts';
import { configMaps } from '../api/resources.ts';
import { parseTime } from '../kit/clock.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { GrantProof } from './live-grants.ts';

/** The public keys of the installation. */
interface KeyList extends Projected {
  readonly verifier: GrantVerifier;
  readonly isEmpty: boolean;
}

/** Size of a public key, bytes. */
const KEY_BYTES = 32;
/** Maximum number of keys that the gateway reads; the server lists at most two. */
const MAX_KEYS = 8;

/** Verifies grants with public keys. The server lists the keys in a ConfigMap, and this class watches the ConfigMap. */
export class PublicKeys implements GrantProof {
  readonly store: Store<KeyList>;
  readonly #key: string;
  /** The proved end by request, epoch ms; undefined: not proved. A view never changes, so the end holds until the keys change. */
  #ends = new WeakMap<RequestView, number | undefined>();

  constructor(cluster: Cluster, namespace: string) {
    this.#key = keyOf({ namespace, name: keySecretName });
    this.store = cluster.watch({
      resource: configMaps,
      namespace,
      fieldSelector: `metadata.name=${keySecretName}`,
      project: readKeyList,
    }).store;
    this.store.subscribe(() => {
      this.#ends = new WeakMap();
    });
  }

  get hasKeys(): boolean {
    return this.problem() === undefined;
  }

  get ageMs(): number {
    return this.store.ageMs;
  }

  onChange(listener: () => void): () => void {
    return this.store.subscribe(() => {
      // An empty or deleted list does not show that a key was replaced, so this change alone must not end streams.
      if (this.hasKeys) listener();
    });
  }

  /** A readiness check: why no grant can be proved; undefined if there is a key. */
  problem(): string | undefined {
    const list = this.store.get(this.#key);
    if (list && !list.isEmpty) return undefined;
    return `ConfigMap ${this.#key} does not exist, was not read, or lists no public key; the server writes it when it first runs the access feature; check that the ServiceAccount of the gateway may watch it`;
  }

  endMs(request: RequestView): number | undefined {
    if (!this.#ends.has(request)) this.#ends.set(request, this.#provedEndMs(request));
    return this.#ends.get(request);
  }

  /**
   * The end of the signed grant, as its extensions changed it. Of the extensions, only those before the first one without a valid signature
   * count. Undefined if there are no keys, or the grant has no valid signature.
   */
  #provedEndMs(request: RequestView): number | undefined {
    const verifier = this.store.get(this.#key)?.verifier;
    const { grant, extensions } = request;
    if (!verifier || !grant || !verifier.isGrantOf(request, grant)) return undefined;
    const firstInvalid = extensions.findIndex(
      (extension: ExtensionStatus, index) => !verifier.isExtensionOf(request, grant, index, extension),
    );
    const proved = firstInvalid < 0 ? extensions : extensions.slice(0, firstInvalid);
    return proved.reduce((endMs, { expiresAt }) => parseTime(expiresAt ?? '') ?? endMs, parseTime(grant.expiresAt));
  }
}

function readKeyList(object: KubeObject): KeyList {
  const { metadata } = object;
  const data = own(object, 'data');
  const keys = Object.keys(isRecord(data) ? data : {})
    .map((key) => Buffer.from(key, 'base64url'))
    .filter(({ length }) => length === KEY_BYTES)
    .slice(0, MAX_KEYS);
  return {
    key: keyOf(metadata),
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    verifier: new GrantVerifier(keys),
    isEmpty: keys.length === 0,
  };
}
