import { keySecretName } from '../../src/access/signing/key-secret.ts';
import { grantPurpose } from '../../src/access/signing/signer.ts';
import { execAccessRequests } from '../../src/api/access/exec-access.ts';
import type { Grant } from '../../src/api/access/grant.ts';
import { childNameOf, revokeFinalizer } from '../../src/api/access/names.ts';
import type { ExtensionStatus } from '../../src/api/access/status.ts';
import type { KubeObject, Resource } from '../../src/api/object.ts';
import { configMaps } from '../../src/api/resources.ts';
import { LiveGrants, openGrantStores } from '../../src/gateway/live-grants.ts';
import { PublicKeys } from '../../src/gateway/public-keys.ts';
import { formatTime } from '../../src/kit/clock.ts';
import { DerivedKeyPair } from '../../src/kit/ed25519.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { InformerStore } from '../../src/kube/informer-store.ts';
import { silentLog } from '../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../src/kube/store.ts';
import { keyOf, signerOf } from './signers.ts';
import type { SimulatedClock } from './simulated-clock.ts';

const namespace = 'payments';
const owner = { namespace, name: 'debug', uid: 'r-12345678' };

/** One request with a grant, as the watches of the gateway report it. The test makes every change. */
export class GatewayCluster {
  readonly clock: SimulatedClock;
  readonly grants: LiveGrants;
  readonly keys: PublicKeys;
  /** Namespace and name of the grant. */
  readonly grant = { namespace, name: childNameOf(owner) };
  readonly #stores = new Map<Resource, InformerStore<Projected>>();
  readonly #signer = signerOf('ours');
  #version = 1;
  #request: KubeObject | undefined;

  constructor(clock: SimulatedClock) {
    this.clock = clock;
    const watch = <T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> => {
      const store = new InformerStore(spec, clock, silentLog);
      this.#stores.set(spec.resource, store as unknown as InformerStore<Projected>);
      return { store, release: () => {} };
    };
    const cluster = { watch } as Cluster;
    this.keys = new PublicKeys(cluster, namespace);
    this.grants = new LiveGrants(openGrantStores(cluster), this.keys, clock);
    for (const store of this.#stores.values()) store.beginList().commit();
    this.alive();
  }

  /** All watches have heard from the API server. */
  alive(): void {
    for (const store of this.#stores.values()) store.alive();
  }

  listKeys(...names: string[]): void {
    const data = names.map((name) => [
      new DerivedKeyPair(keyOf(name), grantPurpose).publicKey.toString('base64url'),
      'current',
    ]);
    this.#apply(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: keySecretName, namespace, uid: 'k-1' },
      data: Object.fromEntries(data),
    });
  }

  /** Stores the request with its signed grant, which ends at `endMs`. */
  open(endMs: number, over: Partial<Grant> = {}, signer = this.#signer): Grant {
    const grant = signer.signGrant(owner, {
      template: { kind: 'ExecAccessTemplate', name: 'payments-exec', uid: 't-1', generation: 1 },
      subjects: [{ kind: 'User', name: 'alice' }],
      pod: { name: 'web-0' },
      rules: [],
      session: { via: 'Gateway' },
      planHash: 'c0ffee',
      expiresAt: formatTime(endMs),
      ...over,
    });
    this.change({ spec: { templateName: 'payments-exec' }, status: { grant } });
    return grant;
  }

  /** Appends a decided extension, which `signer` signs. */
  extend(grant: Grant, index: number, endMs: number, signer = this.#signer): void {
    const decision = { by: '1h', state: 'Granted', expiresAt: formatTime(endMs) } as ExtensionStatus;
    const status = (this.#request?.status ?? {}) as { extensions?: ExtensionStatus[] };
    const extensions = [
      ...(status.extensions ?? []).slice(0, index),
      signer.signExtension(owner, grant, index, decision),
    ];
    this.change({ status: { ...status, extensions } });
  }

  /** Changes fields of the stored request. */
  change({ metadata, ...fields }: { metadata?: object; spec?: object; status?: object }): void {
    const before = this.#request ?? {
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'ExecAccessRequest',
      metadata: {
        namespace,
        name: owner.name,
        uid: owner.uid,
        creationTimestamp: formatTime(this.clock.now()),
        finalizers: [revokeFinalizer],
      },
    };
    this.#request = { ...before, ...fields, metadata: { ...before.metadata, ...metadata } };
    this.#apply(execAccessRequests, this.#request);
  }

  remove(): void {
    if (!this.#request) return;
    const { metadata } = this.#request;
    const resourceVersion = String(++this.#version);
    this.#stores
      .get(execAccessRequests)
      ?.apply('DELETED', { ...this.#request, metadata: { ...metadata, resourceVersion } }, resourceVersion);
    this.#request = undefined;
  }

  #apply(resource: Resource, object: KubeObject): void {
    const resourceVersion = String(++this.#version);
    this.#stores
      .get(resource)
      ?.apply('MODIFIED', { ...object, metadata: { ...object.metadata, resourceVersion } }, resourceVersion);
  }
}
