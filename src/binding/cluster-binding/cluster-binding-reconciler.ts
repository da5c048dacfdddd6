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
  beatMs,
  type ConflictingKonnector,
  includesSecret,
  planStatus,
  type SecretName,
  type StatusPatch,
} from './plan-status.ts';
import type { SecretSync } from './secret-sync.ts';

export interface ClusterBindingDeps {
  readonly session: OpenSession;
  /** The provider's Secret that the ClusterBinding names; undefined while it is not watched. */
  readonly providerSecret: (secret: string) => Store<SecretView> | undefined;
  readonly sync: SecretSync;
  /** The Secrets of the consumer that kubeconfigs of this place came from: of this session first, then of others for the same namespace. */
  readonly refs: () => readonly SecretKeyRef[];
  /** Whether this session is the only one of this process that reports to the ClusterBinding. */
  readonly isAlone: () => boolean;
  readonly recordHeartbeat: (heartbeat: Heartbeat) => void;
  readonly events: EventRecorder;
  /** Version of this program. */
  readonly version: string;
  readonly clock: Clock;
}

/** A watch that works is heard of more often, milliseconds. */
const silentMs = 30_000;

/** Whether nothing is heard of the provider: then only asking tells whether it is there. */
export const isSilent = ({ stores }: OpenSession): boolean => stores.clusterBindings.ageMs >= silentMs;

/**
 * Copies the provider's kubeconfig and reports to the ClusterBinding. A step that fails does not keep the later ones from being done.
 * A heartbeat counts as sent when a write succeeded, or when a fresh read shows that none is due.
 */
export class ClusterBindingReconciler implements Reconciler {
  readonly #deps: ClusterBindingDeps;
  readonly #conflicts: KonnectorConflicts;
  /** When the provider last answered us, by the monotonic clock; undefined after a failure. */
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
        `ClusterBinding ${key} is not there, or cannot be read; the provider's backend makes it`,
        undefined,
      );
    const synced = await this.#syncSecret(view, signal);
    signal.throwIfAborted();
    const plan = planStatus({
      view,
      secrets: this.#secretNames(),
      secretValid: synced.update,
      version: this.#deps.version,
      conflict: this.#findConflict(view),
      nowMs: clock.now(),
    });
    try {
      if (plan.status) await this.#write(view, plan.status, signal);
      else if (this.#isAnswerOld()) await session.client.get(clusterBindings, nameOf(key), { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) return notReady('the last write in the store');
      // Reads and writes alternate, and one outage is to be told once.
      const why = error instanceof TransportError ? error.why : describe(error);
      return this.#failed(`${session.server}: ${why}`, error);
    }
    if (plan.status || this.#isAnswerOld()) this.#answeredAtMs = clock.monotonic();
    this.#deps.recordHeartbeat({ ok: true });
    return synced.error === undefined ? after(plan.dueInMs) : retry(synced.error);
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

  /** Its watch need not have synced, or may not be allowed: a read tells why. */
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
    // What is not there comes back with an event.
    return error === undefined ? after(beatMs) : retry(error);
  }

  #isAnswerOld(): boolean {
    const { session, clock } = this.#deps;
    const lastsMs = isSilent(session) ? silentMs : beatMs;
    return this.#answeredAtMs === undefined || clock.monotonic() - this.#answeredAtMs >= lastsMs;
  }

  #secretNames(): { namespace: string; name: string }[] {
    const names = new Map(
      this.#deps.refs().map(({ namespace, name }) => [keyOf({ namespace, name }), { namespace, name }]),
    );
    return [...names.values()];
  }

  #findConflict(view: ClusterBindingView): ConflictingKonnector | undefined {
    if (!this.#deps.isAlone()) this.#conflicts.reset();
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

/** Another konnector that has not been heard of for so long is gone, milliseconds: twice the interval that all of them promise. */
const conflictMs = 600_000;

const advice = 'Two clusters that share one kubeconfig disturb each other: bind each on its own';

/**
 * Notices heartbeats that are newer than ours and that we did not write, and a record of a Secret that is not ours. The heartbeat that
 * was there before our first one says nothing.
 */
class KonnectorConflicts {
  readonly #clock: Clock;
  /** Our newest heartbeat, as it was sent, epoch milliseconds. */
  #sentMs: number | undefined;
  #heardMs: number | undefined;
  /** The foreign Secret that was recorded last, and when it was seen so. */
  #recorded: { readonly secret: SecretName; readonly seenMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be told before the heartbeat is sent, because it may come back before the answer does. */
  recordSent(heartbeat: string): void {
    this.#sentMs = parseTime(heartbeat);
  }

  /** Heartbeats of our own may now look like those of another. */
  reset(): void {
    this.#sentMs = undefined;
  }

  /** What there is to say of another konnector, if there is one; `ours` are the Secrets that lead to this ClusterBinding here. */
  observe(view: ClusterBindingView, ours: readonly SecretName[]): ConflictingKonnector | undefined {
    return this.#beats(view) ?? this.#record(view, ours);
  }

  #beats({ lastHeartbeatTime }: ClusterBindingView): ConflictingKonnector | undefined {
    const beatMs = lastHeartbeatTime === undefined ? undefined : parseTime(lastHeartbeatTime);
    if (this.#sentMs !== undefined && beatMs !== undefined && beatMs > this.#sentMs)
      this.#heardMs = this.#clock.monotonic();
    if (!this.#isRecent(this.#heardMs)) return undefined;
    return { reason: 'AnotherKonnector', message: `another konnector reports to this ClusterBinding. ${advice}` };
  }

  /** It is replaced by ours with the next heartbeat, and told of a while longer. */
  #record(
    { consumerSecretRef: secret }: ClusterBindingView,
    ours: readonly SecretName[],
  ): ConflictingKonnector | undefined {
    if (secret && !includesSecret(ours, secret)) this.#recorded = { secret, seenMs: this.#clock.monotonic() };
    const recorded = this.#recorded;
    if (!recorded || includesSecret(ours, recorded.secret) || !this.#isRecent(recorded.seenMs)) return undefined;
    return {
      reason: 'ForeignConsumerSecret',
      message: `status.consumerSecretRef named Secret ${keyOf(recorded.secret)}, by which no binding here reaches this provider; the Secret of this cluster takes its place. If it belongs to another cluster, the two share one kubeconfig. ${advice}. If it is one that was replaced here, there is nothing to do`,
    };
  }

  #isRecent(ms: number | undefined): boolean {
    return ms !== undefined && this.#clock.monotonic() - ms <= conflictMs;
  }
}
