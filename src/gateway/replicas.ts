import { apiVersionOf, type KubeObject, keyOf } from '../api/object.ts';
import { leases } from '../api/resources.ts';
import { after, done, type Result } from '../engine/result.ts';
import { type HintSource, hintSource } from '../engine/sources/hint.ts';
import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { type Client, findObject } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isConflict } from '../kube/errors.ts';
import type { Projected, Store } from '../kube/store.ts';

/** A replica of the gateway, by its Lease. */
interface ReplicaView extends Projected {
  readonly replica: string;
  /** Where the other replicas reach this replica, `IP:port`; undefined if its Lease does not name an address. */
  readonly address: string | undefined;
}

/** Marks the Leases of replicas, because other Leases in the namespace may have similar names. */
const replicaLabel = 'gateway.drawbridge.dev/replica';
const addressAnnotation = 'gateway.drawbridge.dev/address';
const leasePrefix = 'drawbridge-gateway-';

/** How often a replica with sessions renews its Lease, milliseconds. */
const RENEW_MS = 30_000;
/**
 * How long a Lease is valid without a renewal, milliseconds. It is longer than the 90 s (STALE_MS) after which a replica that cannot reach the
 * API server ends its own sessions. So those sessions have ended before other replicas delete their AccessSessions.
 */
const DURATION_MS = 120_000;

interface ReplicasOptions {
  readonly client: Client;
  readonly store: Store<ReplicaView>;
  /** The namespace of the server. */
  readonly namespace: string;
  /** The name of this replica, as `replicaName` forms it. */
  readonly replica: string;
  /** Where the other replicas reach this replica, `IP:port`; undefined: nowhere. */
  readonly address: () => string | undefined;
  readonly clock: Clock;
}

/**
 * The name of a replica: the last 200 characters of its identity, in lower case, with dashes in place of characters other than letters
 * and digits. Without dashes at its ends; `replica` if no character remains.
 */
export const replicaName = (identity: string): string =>
  identity
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(-200)
    .replaceAll(/^-+|-+$/g, '') || 'replica';

/** Opens the store of the Leases of all replicas. */
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
 * The replicas of the gateway, each with a Lease as its heartbeat. A replica renews its Lease only while it holds sessions, so that a
 * gateway without sessions writes nothing. Once a Lease has expired, any other replica deletes it.
 */
export class Replicas {
  /** Emits the key of the Lease of this replica when the Lease must be renewed. */
  readonly hints: HintSource = hintSource('sessions');
  readonly #options: ReplicasOptions;
  /**
   * By key: when this process first saw the current resourceVersion of the Lease, monotonic milliseconds. This process does not trust the
   * times that other processes write.
   */
  readonly #firstSeen = new Map<string, { readonly resourceVersion: string; readonly atMs: number }>();
  /** When this replica sent its last successful renewal, monotonic milliseconds; -Infinity: never. */
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  /** Set while a renewal runs. */
  #renewing: Promise<void> | undefined;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    options.store.subscribe((event) => {
      if (event.type === 'deleted') this.#firstSeen.delete(event.key);
      else this.#noteResourceVersion(event.now);
    });
  }

  /** The name of this replica. */
  get name(): string {
    return this.#options.replica;
  }

  /** The Leases of all replicas. */
  get store(): Store<ReplicaView> {
    return this.#options.store;
  }

  /** Where to reach a replica, `IP:port`; undefined if the replica has no Lease, or its Lease does not name an address. */
  addressOf(replica: string): string | undefined {
    return this.store.get(this.#key(replica))?.address;
  }

  /** Renews the Lease of this replica, unless the last renewal is less than 30 s old. Rejects as the client does. */
  async ensureRenewed(): Promise<void> {
    const { clock } = this.#options;
    if (clock.monotonic() < this.#renewedAtMs + RENEW_MS) return;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  /**
   * Whether the Lease of a replica exists and has not expired. Before it resolves to false, it reads the Lease from the API server. Rejects
   * as the client does.
   */
  async isAlive(replica: string, signal: AbortSignal): Promise<boolean> {
    const { client, namespace } = this.#options;
    const known = this.store.get(this.#key(replica));
    if (known && this.#leftMs(known) > 0) return true;
    const lease = await findObject(client, leases, { namespace, name: `${leasePrefix}${replica}` }, { signal });
    const found = lease && viewReplica(lease);
    // The store has no valid Lease. With another resourceVersion, the Lease was created or renewed since.
    return found !== undefined && found.resourceVersion !== known?.resourceVersion;
  }

  /**
   * If `key` is the Lease of this replica, renews it while `holdsSessions` is true. If `key` is the Lease of another replica, deletes it
   * once it has expired.
   */
  async reconcile(key: string, holdsSessions: boolean, signal: AbortSignal): Promise<Result> {
    const { clock, client, namespace } = this.#options;
    const found = this.store.get(key);
    if (key === this.#key(this.name)) {
      if (!holdsSessions) return done;
      // If another client deleted the Lease, create it at once.
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

  /** Deletes the Lease of this replica, if there is one. Rejects as the client does. */
  async release(): Promise<void> {
    const { client, namespace } = this.#options;
    await this.#renewing?.catch(() => {});
    if (this.#renewedAtMs === Number.NEGATIVE_INFINITY && !this.store.get(this.#key(this.name))) return;
    await client.delete(leases, { namespace, name: `${leasePrefix}${this.name}` });
  }

  /** Enqueues the Lease of this replica, to be renewed in 30 s. */
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

  /** Time until the Lease expires, milliseconds; 0 or less if it has expired. */
  #leftMs({ key }: ReplicaView): number {
    const { clock } = this.#options;
    return (this.#firstSeen.get(key)?.atMs ?? clock.monotonic()) + DURATION_MS - clock.monotonic();
  }

  #key(replica: string): string {
    return keyOf({ namespace: this.#options.namespace, name: `${leasePrefix}${replica}` });
  }
}
