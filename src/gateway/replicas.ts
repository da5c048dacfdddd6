import { apiVersionOf, type KubeObject, keyOf } from '../api/object.ts';
import { leases } from '../api/resources.ts';
import { after, done, type Result } from '../engine/result.ts';
import { type HintSource, hintSource } from '../engine/sources/hint.ts';
import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { type Client, findObject } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isConflict } from '../kube/errors.ts';
import type { Projected, Store } from '../kube/store.ts';

interface ReplicaView extends Projected {
  readonly replica: string;
  /** `IP:port` for the other replicas, from the Lease. */
  readonly address: string | undefined;
}

/** Other Leases in the namespace may have similar names. */
const replicaLabel = 'gateway.drawbridge.dev/replica';
const addressAnnotation = 'gateway.drawbridge.dev/address';
const leasePrefix = 'drawbridge-gateway-';

/** How often a replica with sessions renews its Lease. */
const RENEW_MS = 30_000;
/**
 * Longer than the 90 s (STALE_MS) after which a replica without the API server ends its sessions:
 * they have ended before others delete their AccessSessions.
 */
const DURATION_MS = 120_000;

interface ReplicasOptions {
  readonly client: Client;
  readonly store: Store<ReplicaView>;
  readonly namespace: string;
  readonly replica: string;
  /** `IP:port` for the other replicas, if they can reach this one. */
  readonly address: () => string | undefined;
  readonly clock: Clock;
}

/** The last 200 characters of the identity, made fit for a name of Kubernetes. */
export const replicaName = (identity: string): string =>
  identity
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(-200)
    .replaceAll(/^-+|-+$/g, '') || 'replica';

export const openReplicaStore = (cluster: Cluster, namespace: string): Store<ReplicaView> =>
  cluster.watch({ resource: leases, namespace, labelSelector: replicaLabel, project: viewReplica }).store;

function viewReplica({ metadata }: KubeObject): ReplicaView | undefined {
  const { uid, resourceVersion, namespace, name, annotations, labels } = metadata;
  if (!uid || !resourceVersion || !namespace || !name.startsWith(leasePrefix) || labels?.[replicaLabel] === undefined)
    return undefined;
  const replica = name.slice(leasePrefix.length);
  return { key: keyOf({ namespace, name }), uid, resourceVersion, replica, address: annotations?.[addressAnnotation] };
}

/**
 * The replicas of the gateway, each with a Lease as its heartbeat. A replica renews it only while
 * it has sessions, so an idle gateway writes nothing. Any other replica deletes an expired Lease.
 */
export class Replicas {
  /** Emits the key of this replica's Lease when it is due. */
  readonly hints: HintSource = hintSource('sessions');
  readonly #options: ReplicasOptions;
  /** By key: when this process first saw the Lease's version. It trusts no times of others. */
  readonly #firstSeen = new Map<string, { readonly resourceVersion: string; readonly atMs: number }>();
  /** When the last successful renewal was sent; monotonic. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | undefined;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    options.store.subscribe((event) => {
      if (event.type === 'deleted') this.#firstSeen.delete(event.key);
      else this.#noteResourceVersion(event.now);
    });
  }

  get name(): string {
    return this.#options.replica;
  }

  get store(): Store<ReplicaView> {
    return this.#options.store;
  }

  /** `IP:port` from the replica's Lease. */
  addressOf(replica: string): string | undefined {
    return this.store.get(this.#key(replica))?.address;
  }

  /** Does nothing if the last renewal is less than 30 s old. Rejects as the client does. */
  async ensureRenewed(): Promise<void> {
    const { clock } = this.#options;
    if (clock.monotonic() < this.#renewedAtMs + RENEW_MS) return;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  /** Reads the Lease from the API server before it says no. Rejects as the client does. */
  async isAlive(replica: string, signal: AbortSignal): Promise<boolean> {
    const { client, namespace } = this.#options;
    const known = this.store.get(this.#key(replica));
    if (known && this.#leftMs(known) > 0) return true;
    const lease = await findObject(client, leases, { namespace, name: `${leasePrefix}${replica}` }, { signal });
    const found = lease && viewReplica(lease);
    // The store has no valid Lease, but another resourceVersion is newer: created or renewed since.
    return found !== undefined && found.resourceVersion !== known?.resourceVersion;
  }

  /** Renews the Lease of this replica while it has sessions; deletes an expired one of another. */
  async reconcile(key: string, holdsSessions: boolean, signal: AbortSignal): Promise<Result> {
    const { clock, client, namespace } = this.#options;
    const found = this.store.get(key);
    if (key === this.#key(this.name)) {
      if (!holdsSessions) return done;
      // Another client deleted the Lease: create it at once.
      if (!found) this.#renewedAtMs = Number.NEGATIVE_INFINITY;
      await this.ensureRenewed();
      return after(Math.max(0, this.#renewedAtMs + RENEW_MS - clock.monotonic()));
    }
    if (!found) return done;
    const leftMs = this.#leftMs(found);
    if (leftMs > 0) return after(leftMs);
    const { uid, resourceVersion, replica } = found;
    try {
      await client.delete(leases, { namespace, name: `${leasePrefix}${replica}` }, { uid, resourceVersion, signal });
    } catch (error) {
      // The replica has renewed its Lease meanwhile.
      if (!isConflict(error)) throw error;
    }
    return done;
  }

  /** Deletes the Lease of this replica. Rejects as the client does. */
  async release(): Promise<void> {
    const { client, namespace } = this.#options;
    await this.#renewing?.catch(() => {});
    if (this.#renewedAtMs === Number.NEGATIVE_INFINITY && !this.store.get(this.#key(this.name))) return;
    await client.delete(leases, { namespace, name: `${leasePrefix}${this.name}` });
  }

  wake(): void {
    this.hints.hint(this.#key(this.name), 'session', { delayMs: RENEW_MS });
  }

  async #renew(): Promise<void> {
    const { client, clock, namespace } = this.#options;
    const address = this.#options.address();
    const sentAtMs = clock.monotonic();
    const lease: KubeObject = {
      apiVersion: apiVersionOf(leases),
      kind: leases.kind,
      metadata: {
        name: `${leasePrefix}${this.name}`,
        namespace,
        labels: { [replicaLabel]: 'true' },
        ...(address === undefined ? {} : { annotations: { [addressAnnotation]: address } }),
      },
      spec: {
        holderIdentity: this.name,
        leaseDurationSeconds: DURATION_MS / 1000,
        renewTime: formatMicroTime(clock.now()),
      },
    };
    await client.apply(leases, lease, { fieldManager: 'drawbridge', force: true });
    this.#renewedAtMs = sentAtMs;
  }

  #noteResourceVersion({ key, resourceVersion }: ReplicaView): void {
    if (this.#firstSeen.get(key)?.resourceVersion === resourceVersion) return;
    this.#firstSeen.set(key, { resourceVersion, atMs: this.#options.clock.monotonic() });
  }

  /** 0 or less if the Lease has expired. */
  #leftMs({ key }: ReplicaView): number {
    const { clock } = this.#options;
    return (this.#firstSeen.get(key)?.atMs ?? clock.monotonic()) + DURATION_MS - clock.monotonic();
  }

  #key(replica: string): string {
    return keyOf({ namespace: this.#options.namespace, name: `${leasePrefix}${replica}` });
  }
}
