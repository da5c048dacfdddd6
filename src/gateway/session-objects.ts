import { accessSessions } from '../api/access/access-session.ts';
import { keyOf, nameOf } from '../api/object.ts';
import { Controller } from '../engine/controller.ts';
import { done, type Result } from '../engine/result.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import { hintSource } from '../engine/sources/hint.ts';
import { interval } from '../engine/sources/interval.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { unlessAborted } from '../kit/promises.ts';
import { type Client, findObject } from '../kube/client.ts';
import { isConflict } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { StreamDecision } from './pod-call.ts';
import type { RecordingName } from './recording/sink.ts';
import type { Replicas } from './replicas.ts';
import type { AuditedCall, SessionRecord } from './session-audit.ts';
import { byReplica, type SessionView, sessionObject } from './session-view.ts';
import type { Session } from './sessions.ts';
import type { Holder } from './view-handler.ts';

interface HeldObject {
  readonly session: Session;
  /** Set once the API server has created the object. */
  uid: string | undefined;
  isOver: boolean;
  /** A client may have deleted the object before this replica knew that it exists. */
  mayBeDeleted: boolean;
}

interface SessionObjectsDeps {
  readonly client: Client;
  readonly store: Store<SessionView>;
  readonly replicas: Replicas;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** How long the renewal of the Lease and the creation of the object may delay a session. */
const CREATE_MS = 5_000;
/** Interval of the check for objects that were deleted while the watch was broken. */
const CHECK_MS = 30_000;
/** Limit for deletions at the end of the process. Other replicas delete what remains. */
const CLOSE_MS = 5_000;

/**
 * One AccessSession for each open stream, for administrators: if a user deletes it, the stream
 * ends. Each replica creates and deletes those of its own sessions, and deletes those of replicas
 * whose Lease has expired.
 */
export class SessionObjects {
  readonly #deps: SessionObjectsDeps;
  /** By key: this replica's sessions whose object may still exist. */
  readonly #held = new Map<string, HeldObject>();
  readonly #hints = hintSource('session');

  constructor(deps: SessionObjectsDeps) {
    this.#deps = deps;
  }

  /** The other replica that holds the open session; its address comes from its Lease alone. */
  holderOf({ namespace, session }: RecordingName): Holder | undefined {
    const { store, replicas } = this.#deps;
    const view = store.get(keyOf({ namespace, name: session }));
    if (!view || view.replica === replicas.name) return undefined;
    const { replica, pod, request } = view;
    return { replica, address: replicas.addressOf(replica), record: { pod, request } };
  }

  /**
   * Creates the AccessSession after a due renewal of the Lease. Call it before the first byte, and
   * `end` later in any case. Rejects with CodedError `GatewayFailed` if that fails or takes 5 s.
   */
  async begin(call: AuditedCall, decision: StreamDecision, record: SessionRecord, session: Session): Promise<void> {
    const { client, clock, replicas, log } = this.#deps;
    const key = keyOf({ namespace: call.grant.namespace, name: session.id });
    const held: HeldObject = { session, uid: undefined, isOver: false, mayBeDeleted: false };
    this.#held.set(key, held);
    const abort = new AbortController();
    const cancel = clock.schedule(CREATE_MS, () =>
      abort.abort(new Error(`the API server did not answer within ${CREATE_MS / 1000} s`)),
    );
    try {
      await unlessAborted(replicas.ensureRenewed(), abort.signal);
      const object = sessionObject(call, decision, record, session, replicas.name, clock.now());
      const { metadata } = await client.create(accessSessions, object, { signal: abort.signal });
      held.uid = metadata.uid ?? '';
      replicas.wake();
      if (held.isOver || held.mayBeDeleted) this.#hints.hint(key);
    } catch (error) {
      this.#held.delete(key);
      // The API server may have created the object nevertheless; the controller deletes it then.
      this.#hints.hint(key);
      log.warn('cannot create the AccessSession, so the session does not open', {
        namespace: call.grant.namespace,
        session: session.id,
        error: describe(error),
      });
      throw notStored();
    } finally {
      cancel();
    }
  }

  /** The controller deletes the object. */
  end(namespace: string, { id }: Pick<Session, 'id'>): void {
    const key = keyOf({ namespace, name: id });
    const held = this.#held.get(key);
    if (!held) return;
    held.isOver = true;
    this.#hints.hint(key);
  }

  controllers(): Controller[] {
    const { clock, log, metrics, store, replicas } = this.#deps;
    const shared = { clock, log, backoff: { baseMs: 100, capMs: 30_000 } };
    return [
      new Controller({
        ...shared,
        name: 'gateway-sessions',
        metrics: metrics.controller('gateway-sessions'),
        sources: [
          fromSubscription('accesssessions', store, ({ key }) => [key]),
          this.#hints,
          interval({ name: 'missing', clock, everyMs: CHECK_MS, keys: () => this.#missing() }),
          // The Lease of a replica is deleted: the others delete the objects of its sessions.
          fromSubscription('leases', replicas.store, (event) =>
            event.type === 'deleted' ? store.byIndex(byReplica, event.before.replica).map(({ key }) => key) : [],
          ),
        ],
        reconciler: { reconcile: (key, signal) => this.#reconcile(key, signal) },
      }),
      new Controller({
        ...shared,
        name: 'gateway-replicas',
        metrics: metrics.controller('gateway-replicas'),
        sources: [fromSubscription('leases', replicas.store, ({ key }) => [key]), replicas.hints],
        reconciler: { reconcile: (key, signal) => replicas.reconcile(key, this.#held.size > 0, signal) },
        workers: 1,
      }),
    ];
  }

  /** Call it after the sessions and their recordings have ended. Never rejects. */
  async close(): Promise<void> {
    const { clock, store, replicas, log } = this.#deps;
    const abort = new AbortController();
    const cancel = clock.schedule(CLOSE_MS, () =>
      abort.abort(new Error(`the API server did not answer all calls within ${CLOSE_MS / 1000} s`)),
    );
    const left = new Set([...store.byIndex(byReplica, replicas.name).map(({ key }) => key), ...this.#held.keys()]);
    try {
      await Promise.all([...left].map((key) => this.#release(key, abort.signal)));
    } catch (error) {
      log.warn('cannot delete all AccessSessions of this replica; another replica of the gateway deletes the rest', {
        replica: replicas.name,
        error: describe(error),
      });
    } finally {
      cancel();
    }
    await replicas.release().catch((error: unknown) =>
      log.warn('cannot delete the Lease of this replica; another replica of the gateway deletes it after it expires', {
        replica: replicas.name,
        error: describe(error),
      }),
    );
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { store, replicas, clock } = this.#deps;
    const held = this.#held.get(key);
    const stored = store.get(key);
    if (held?.uid === undefined) {
      if (held) held.mayBeDeleted = true;
      else if (stored && (stored.replica === replicas.name || !(await replicas.isAlive(stored.replica, signal))))
        await this.#release(key, signal);
    } else if (held.isOver) {
      await this.#release(key, signal);
    } else {
      const isUnseen = stored?.uid !== held.uid || stored.deleting;
      if (isUnseen && (await this.#isDeleted(key, held.uid, signal)))
        held.session.end({ code: 'Killed', atMs: clock.now() });
    }
    return done;
  }

  async #release(key: string, signal: AbortSignal): Promise<void> {
    const uid = this.#held.get(key)?.uid ?? this.#deps.store.get(key)?.uid;
    if (uid === undefined) return;
    await this.#delete(key, uid, signal);
    this.#held.delete(key);
  }

  /** True also while the API server is deleting the object. */
  async #isDeleted(key: string, uid: string, signal: AbortSignal): Promise<boolean> {
    const found = await findObject(this.#deps.client.urgent(), accessSessions, nameOf(key), { signal });
    return found?.metadata.uid !== uid || found.metadata.deletionTimestamp !== undefined;
  }

  async #delete(key: string, uid: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.client.delete(accessSessions, nameOf(key), { uid, signal });
    } catch (error) {
      // Another object has the name; it stays.
      if (!isConflict(error)) throw error;
    }
  }

  /** The keys of this replica's sessions whose object is not in the store. */
  *#missing(): Iterable<string> {
    for (const key of this.#held.keys()) if (!this.#deps.store.get(key)) yield key;
  }
}

/** For users, so without the reason, which may name parts of the cluster. */
const notStored = (): CodedError =>
  new CodedError(
    'GatewayFailed',
    'the gateway could not create the AccessSession, by which administrators see and end the session; try again, or tell an administrator, who finds the reason in the log of the gateway',
  );
