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

interface KeyList extends Projected {
  readonly verifier: GrantVerifier;
  readonly isEmpty: boolean;
}

const KEY_BYTES = 32;
/** The server lists at most two. */
const MAX_KEYS = 8;

/** The public keys of the installation, from the ConfigMap in which the server lists them. */
export class PublicKeys implements GrantProof {
  readonly store: Store<KeyList>;
  readonly #key: string;
  /** The proved ends, epoch ms. A view never changes, so they hold until the keys change. */
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
      // An empty or deleted list does not show that a key was replaced, so it must not end streams.
      if (this.hasKeys) listener();
    });
  }

  /** A readiness check: why no grant can be proved. */
  problem(): string | undefined {
    const list = this.store.get(this.#key);
    if (list && !list.isEmpty) return undefined;
    return `ConfigMap ${this.#key} does not exist, was not read, or lists no public key; the server writes it when it first runs the access feature; check that the ServiceAccount of the gateway may watch it`;
  }

  endMs(request: RequestView): number | undefined {
    if (!this.#ends.has(request)) this.#ends.set(request, this.#provedEndMs(request));
    return this.#ends.get(request);
  }

  /** Extensions count up to the first one without a valid signature. */
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
