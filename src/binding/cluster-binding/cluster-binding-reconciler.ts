import { clusterBindings } from '../../api/binding/names.ts';
import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { after, notReady, type Reconciler, type Result, retry } from '../../engine/result.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { findObject } from '../../kube/client.ts';
import { isConflict, TransportError } from '../../kube/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Store } from '../../kube/store.ts';
import type { BindConditionUpdate } from '../conditions.ts';
import type { OpenSession } from '../sessions/open-session.ts';
import type { Heartbeat } from '../sessions/provider-session.ts';
import { type SecretView, secretView } from '../sessions/secret-watches.ts';
import type { ClusterBindingView } from '../stores/provider-stores.ts';
import {
  type ConflictingKonnector,
  heartbeatDueMs,
  includesSecret,
  planStatus,
  type SecretName,
  type StatusPatch,
} from './plan-status.ts';
import type { SecretSync } from './secret-sync.ts';

export interface ClusterBindingDeps {
  readonly session: OpenSession;
  /** The store of a provider's Secret (`namespace/name`); undefined while the Secret is not watched. */
  readonly providerSecret: (secret: string) => Store<SecretView> | undefined;
  readonly sync: SecretSync;
  /** The consumer's kubeconfig Secrets for this ClusterBinding: first the Secrets of this session, then the Secrets of other sessions. */
  readonly refs: () => readonly SecretKeyRef[];
  /** Whether this session is the only one of this process that reports to the ClusterBinding. */
  readonly isOnlySession: () => boolean;
  readonly recordHeartbeat: (heartbeat: Heartbeat) => void;
  readonly events: EventRecorder;
  /** Version of drawbridge. */
  readonly version: string;
  readonly clock: Clock;
}

/** `Store.ageMs` from which a watch counts as silent, milliseconds. */
const silentMs = 30_000;

/** Whether the watch of ClusterBindings is silent. If so, only a live read shows whether the provider is reachable. */
export const isSilent = ({ stores }: OpenSession): boolean => stores.clusterBindings.ageMs >= silentMs;

/**
 * Copies the provider's kubeconfig to the consumer and writes the status of the ClusterBinding. If the copy fails, the reconciler still
 * writes the status, and retries the copy. If a write of the status is due, the heartbeat succeeds with the write. If no write is due, the
 * heartbeat succeeds if the provider has answered a recent call. The key is that of the ClusterBinding. A reconcile rejects only if
 * `signal` aborts.
 */
export class ClusterBindingReconciler implements Reconciler {
  readonly #deps: ClusterBindingDeps;
  readonly #conflicts: KonnectorConflicts;
  /** Monotonic time of the provider's last successful answer, milliseconds; undefined before the first one and after a failure. */
  #answeredAtMs: number | undefined;

  constructor(deps: ClusterBindingDeps) {
    this.#deps = deps;
    this.#conflicts = new KonnectorConflicts(deps.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { session, clock } = this.#deps;
    const view = session.stores.clusterBindings.get(key);
    if (!view)
      return this.#failed(
        `ClusterBinding ${key} does not exist or is not valid; ask the provider to create or correct it`,
        undefined,
      );
    const secretSync = await this.#syncSecret(view, signal);
    signal.throwIfAborted();
    const plan = planStatus({
      view,
      secrets: this.#secretNames(),
      secretValid: secretSync.update,
      version: this.#deps.version,
      conflict: this.#findConflict(view),
      nowMs: clock.now(),
    });
    try {
      if (plan.status) await this.#write(view, plan.status, signal);
      else if (this.#isAnswerOld()) await session.client.get(clusterBindings, nameOf(key), { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) return notReady('the event of a conflicting write');
      // `why` omits the call: reads and writes alternate, so a message with the call would change the condition at every retry.
      const why = error instanceof TransportError ? error.why : describe(error);
      return this.#failed(
        `the heartbeat to ${session.server} failed: ${why}; the server retries; if the provider denies the heartbeat, ask it for a kubeconfig that permits heartbeats`,
        error,
      );
    }
    if (plan.status || this.#isAnswerOld()) this.#answeredAtMs = clock.monotonic();
    this.#deps.recordHeartbeat({ ok: true });
    return secretSync.error === undefined ? after(plan.dueInMs) : retry(secretSync.error);
  }

  async #syncSecret(
    view: ClusterBindingView,
    signal: AbortSignal,
  ): Promise<{ readonly update?: BindConditionUpdate; readonly error?: unknown }> {
    const { namespace } = view;
    const { name, key } = view.secretRef;
    const secret = keyOf({ namespace, name });
    try {
      const provider = await this.#providerSecret(secret, signal);
      return { update: await this.#deps.sync.run(provider, secret, key, signal) };
    } catch (error) {
      return { error };
    }
  }

  /** Reads the Secret live while its watch is not synced: a read returns the reason, such as a missing permission. */
  async #providerSecret(secret: string, signal: AbortSignal): Promise<SecretView | undefined> {
    const store = this.#deps.providerSecret(secret);
    if (store?.synced) return store.get(secret);
    const found = await findObject(this.#deps.session.client, secrets, nameOf(secret), { signal });
    return found && secretView(found);
  }

  async #write(
    { key, uid, resourceVersion }: ClusterBindingView,
    status: StatusPatch,
    signal: AbortSignal,
  ): Promise<void> {
    if (status.lastHeartbeatTime !== undefined) this.#conflicts.recordSent(status.lastHeartbeatTime);
    const patch = { metadata: { uid, resourceVersion }, status };
    await this.#deps.session.client.mergePatch(clusterBindings, nameOf(key), patch, { subresource: 'status', signal });
  }

  #failed(message: string, error: unknown): Result {
    this.#answeredAtMs = undefined;
    this.#deps.recordHeartbeat({ ok: false, message });
    // The creation of a missing ClusterBinding arrives as an event.
    return error === undefined ? after(heartbeatDueMs) : retry(error);
  }

  #isAnswerOld(): boolean {
    const { session, clock } = this.#deps;
    const maxAgeMs = isSilent(session) ? silentMs : heartbeatDueMs;
    return this.#answeredAtMs === undefined || clock.monotonic() - this.#answeredAtMs >= maxAgeMs;
  }

  #secretNames(): { namespace: string; name: string }[] {
    const names = new Map(
      this.#deps.refs().map(({ namespace, name }) => [keyOf({ namespace, name }), { namespace, name }]),
    );
    return [...names.values()];
  }

  #findConflict(view: ClusterBindingView): ConflictingKonnector | undefined {
    if (!this.#deps.isOnlySession()) this.#conflicts.reset();
    const conflict = this.#conflicts.observe(view, this.#secretNames());
    const [ref] = this.#deps.refs();
    if (conflict !== undefined && ref) {
      const { namespace, name } = ref;
      this.#deps.events.record({
        regarding: regarding(secrets, { namespace, name }),
        type: 'Warning',
        reason: conflict.reason,
        action: 'Heartbeat',
        note: conflict.message,
      });
    }
    return conflict;
  }
}

/** Time for which a conflict is reported after its last sign, milliseconds: twice the promised heartbeat interval. */
const conflictMs = 600_000;

const ownKubeconfig = 'each cluster needs its own kubeconfig; ask the provider for one for each cluster';

/**
 * Detects another konnector by a heartbeat that is newer than the last one of this process, or by a foreign Secret in the status: one that
 * no binding of this cluster uses. A heartbeat that precedes the first one of this process proves nothing.
 */
class KonnectorConflicts {
  readonly #clock: Clock;
  /** Time in the last heartbeat of this process, epoch milliseconds; undefined before the first one and after `reset`. */
  #sentMs: number | undefined;
  /** Monotonic time at which a newer heartbeat was last observed, milliseconds; undefined if none was. */
  #otherHeartbeatMs: number | undefined;
  /** The last foreign Secret in the status, and the monotonic time at which it was last observed; undefined if none was. */
  #foreign: { readonly secret: SecretName; readonly observedMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call before the heartbeat is sent, because its event may arrive before the answer. */
  recordSent(heartbeat: string): void {
    this.#sentMs = parseTime(heartbeat);
  }

  /** Call when another session of this process also reports, so that the heartbeats of that session do not count as a conflict. */
  reset(): void {
    this.#sentMs = undefined;
  }

  /** The current conflict; undefined if there is none. `localSecrets`: this cluster's Secrets for this ClusterBinding. */
  observe(view: ClusterBindingView, localSecrets: readonly SecretName[]): ConflictingKonnector | undefined {
    return this.#heartbeatConflict(view) ?? this.#secretConflict(view, localSecrets);
  }

  #heartbeatConflict({ lastHeartbeatTime }: ClusterBindingView): ConflictingKonnector | undefined {
    const lastMs = lastHeartbeatTime === undefined ? undefined : parseTime(lastHeartbeatTime);
    if (this.#sentMs !== undefined && lastMs !== undefined && lastMs > this.#sentMs)
      this.#otherHeartbeatMs = this.#clock.monotonic();
    if (!this.#isRecent(this.#otherHeartbeatMs)) return undefined;
    return {
      reason: 'AnotherKonnector',
      message: `another konnector reports to this ClusterBinding; if it runs in the same cluster, stop one of the two; otherwise, ${ownKubeconfig}`,
    };
  }

  /** The next heartbeat of this process replaces the foreign Secret in the status. The conflict is reported for ten minutes after that. */
  #secretConflict(
    { consumerSecretRef: secret }: ClusterBindingView,
    localSecrets: readonly SecretName[],
  ): ConflictingKonnector | undefined {
    if (secret && !includesSecret(localSecrets, secret))
      this.#foreign = { secret, observedMs: this.#clock.monotonic() };
    const foreign = this.#foreign;
    if (!foreign || includesSecret(localSecrets, foreign.secret) || !this.#isRecent(foreign.observedMs))
      return undefined;
    return {
      reason: 'ForeignConsumerSecret',
      message: `status.consumerSecretRef named Secret ${keyOf(foreign.secret)}, which no binding of this cluster uses, so another cluster may share this kubeconfig; ${ownKubeconfig}; if this cluster's Secret was renamed, ignore this message`,
    };
  }

  #isRecent(ms: number | undefined): boolean {
    return ms !== undefined && this.#clock.monotonic() - ms <= conflictMs;
  }
}
