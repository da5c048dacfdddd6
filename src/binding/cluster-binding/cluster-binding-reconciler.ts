import { clusterBindings } from '../../api/binding/names.ts';
import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { after, notReady, type Reconciler, type Result, retry } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { findObject } from '../../kube/client.ts';
import { isConflict, TransportError } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { BindConditionUpdate } from '../conditions.ts';
import type { OpenSession } from '../sessions/open-session.ts';
import type { Heartbeat } from '../sessions/provider-session.ts';
import { type SecretView, secretView } from '../sessions/secret-watches.ts';
import type { ClusterBindingView } from '../stores/provider-stores.ts';
import { heartbeatDueMs, planStatus, type SecretName, type StatusPatch } from './plan-status.ts';
import type { SecretSync } from './secret-sync.ts';

export interface ClusterBindingDeps {
  readonly session: OpenSession;
  /** By `namespace/name`, while the Secret is watched. */
  readonly providerSecret: (secret: string) => Store<SecretView> | undefined;
  readonly sync: SecretSync;
  /** The consumer's kubeconfig Secrets for this ClusterBinding, those of this session first. */
  readonly refs: () => readonly SecretKeyRef[];
  readonly recordHeartbeat: (heartbeat: Heartbeat) => void;
  readonly version: string;
  readonly clock: Clock;
}

/** From this `Store.ageMs` on, a watch counts as silent. */
const silentMs = 30_000;

/** If so, only a live read shows whether the provider is reachable. */
export const isSilent = ({ stores }: OpenSession): boolean => stores.clusterBindings.ageMs >= silentMs;

/**
 * Copies the provider's kubeconfig, and sends heartbeats: a write of the status when one is due,
 * otherwise an answer of the provider that is not too old. A failed copy is retried and holds no
 * heartbeat up. Rejects only if `signal` aborts.
 */
export class ClusterBindingReconciler implements Reconciler {
  readonly #deps: ClusterBindingDeps;
  /** Monotonic milliseconds; undefined after a failure. */
  #answeredAtMs: number | undefined;

  constructor(deps: ClusterBindingDeps) {
    this.#deps = deps;
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
      nowMs: clock.now(),
    });
    try {
      if (plan.status) await this.#write(view, plan.status, signal);
      else if (this.#isAnswerOld()) await session.client.get(clusterBindings, nameOf(key), { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) return notReady('the event of a conflicting write');
      // Without the call: reads and writes alternate, and the condition would change each time.
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

  /** Live while its watch is not synced, because a read tells why, such as no permission. */
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
    const patch = { metadata: { uid, resourceVersion }, status };
    await this.#deps.session.client.mergePatch(clusterBindings, nameOf(key), patch, { subresource: 'status', signal });
  }

  #failed(message: string, error: unknown): Result {
    this.#answeredAtMs = undefined;
    this.#deps.recordHeartbeat({ ok: false, message });
    // A missing ClusterBinding comes as an event.
    return error === undefined ? after(heartbeatDueMs) : retry(error);
  }

  #isAnswerOld(): boolean {
    const { session, clock } = this.#deps;
    const maxAgeMs = isSilent(session) ? silentMs : heartbeatDueMs;
    return this.#answeredAtMs === undefined || clock.monotonic() - this.#answeredAtMs >= maxAgeMs;
  }

  #secretNames(): SecretName[] {
    const names = new Map(
      this.#deps.refs().map(({ namespace, name }) => [keyOf({ namespace, name }), { namespace, name }]),
    );
    return [...names.values()];
  }
}
