import type { Grant } from '../../api/access/grant.ts';
import { childNameOf, revokeFinalizer } from '../../api/access/names.ts';
import type { RequestChild } from '../../api/access/status.ts';
import { keyOf, type ObjectName, type Resource } from '../../api/object.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import { at, done, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { ApiError, isConflict, isForbidden, isNotFound } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { Applier } from '../../rbac/applier.ts';
import type { AccessKind } from '../access-kind.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { Cause } from './cause.ts';
import type { GrantReporter } from './grant-reporter.ts';
import { hasEndedCondition } from './request-conditions.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { finalizerUntilMs } from './requester-attestations.ts';

/** The RoleBinding comes first, because it gives access. */
const revocationOrder = [
  ['RoleBinding', roleBindings],
  ['Role', roles],
  ['Pod', pods],
] as const satisfies readonly (readonly [RequestChild['kind'], Resource])[];

/**
 * Ends grants: deletes the children, and later the request, and then removes the server's finalizer. Every deletion is idempotent. Reports
 * the end of each grant once; if the process stops between a deletion and the report, the end may be reported twice or not at all.
 */
export class Revoker {
  readonly #deps: RevokerDeps;
  /** uids of requests whose RoleBinding this process deleted, or whose subjects it removed. */
  readonly #roleBindingDeleted = new Set<string>();
  /** uids of requests whose children are deleted. Needed so that the events of these deletions cause no further calls. */
  readonly #childrenDeleted = new Set<string>();
  /** uids of requests without children whose `status.ended` is not verified yet. */
  readonly #unverified = new Set<string>();
  /** uids of requests whose finalizer this process removed. Needed because a store that lags behind still shows the finalizer. */
  readonly #finalizerRemoved = new Set<string>();
  /** uids of requests that this process deleted. Needed because a store that lags behind still shows them. */
  readonly #requestDeleted = new Set<string>();
  /** Decides when the finalizer may be removed (`finalizerUntilMs`). */
  readonly #retention: RequestDeadlines;

  constructor(deps: RevokerDeps) {
    this.#deps = deps;
    this.#retention = new RequestDeadlines(deps.clock);
  }

  /**
   * Returns why an open grant must end early: its template or its pod was deleted, another object replaced it under its name, or the pod has
   * ended. Undefined if neither is so; does not check a pod that is not created yet. If the store does not show the object, a live read decides, because the
   * store may lag behind. Rejects as the client does.
   */
  async lostPrerequisite(request: RequestView, grant: Grant, signal: AbortSignal): Promise<Cause | undefined> {
    const { kind } = this.#deps;
    const template = { namespace: request.namespace, name: grant.template.name };
    if (kind.templates.get(keyOf(template))?.uid !== grant.template.uid) {
      if (await this.#noLongerExists(kind.templateResource, template, grant.template.uid, signal))
        return { ending: 'TemplateDeleted' };
    }
    const podUid = grant.pod.uid ?? request.children.find((child) => child.kind === 'Pod')?.uid;
    const pod = { namespace: request.namespace, name: grant.pod.name };
    const stored = this.#deps.pods.get(keyOf(pod));
    if (podUid === undefined) return undefined;
    // The phases Failed and Succeeded are final, so a store that lags behind is right, too.
    if (stored?.uid === podUid)
      return stored.ended === undefined ? undefined : { ending: 'TargetPodGone', podEnd: stored.ended };
    return (await this.#noLongerExists(pods, pod, podUid, signal)) ? { ending: 'TargetPodGone' } : undefined;
  }

  /**
   * Deletes the RoleBinding, which gives access. Resolves to whether this call ended its access: it deleted the RoleBinding, or removed its
   * subjects because finalizers keep it. False without a grant.
   *
   * Also false on a 403, so that `close` still deletes the other children before it rejects with that 403. Example: finalizers keep the
   * RoleBinding, and the server may not remove its subjects, because another client added permissions to the Role that the server lacks.
   * Rejects as the client does on any other error.
   */
  async deleteRoleBinding(request: RequestView, signal: AbortSignal): Promise<boolean> {
    const { uid } = request;
    if (!request.grant || this.#roleBindingDeleted.has(uid) || this.#childrenDeleted.has(uid)) return false;
    try {
      const existed = await this.#deleteChild(request, 'RoleBinding', roleBindings, signal);
      if (existed) this.#roleBindingDeleted.add(uid);
      return existed;
    } catch (error) {
      if (isForbidden(error)) return false;
      throw error;
    }
  }

  /**
   * Deletes the request. Keeps the server's finalizer until the requester's signature is too old to be reused, and requeues for that time.
   * Call it after `close`. Rejects as the client does.
   */
  async remove(request: RequestView, signal: AbortSignal): Promise<Result> {
    if (this.#finalizerRemoved.has(request.uid)) return done;
    if (!request.deleting && !this.#requestDeleted.has(request.uid)) {
      await this.#deps.client
        .delete(this.#deps.kind.requestResource, request, { uid: request.uid, signal })
        .catch((error: unknown) => this.#ignoreIfDeleted(request, error, signal));
      this.#requestDeleted.add(request.uid);
    }
    if (!this.canRelease(request)) {
      const { uid, createdAtMs } = request;
      return at(this.#retention.nextCheckMs(uid, createdAtMs, finalizerUntilMs(request)));
    }
    await this.#removeFinalizer(request, signal);
    return done;
  }

  /** Whether `remove` has deleted the request or removed its finalizer. A store that lags behind may still show the request. */
  hasRemoved({ uid }: RequestView): boolean {
    return this.#requestDeleted.has(uid) || this.#finalizerRemoved.has(uid);
  }

  /** Whether the server may remove its finalizer: the requester's signature is too old to be reused for a new request of the same name. */
  canRelease(request: RequestView): boolean {
    return this.#retention.hasPassed(request.uid, request.createdAtMs, finalizerUntilMs(request));
  }

  /**
   * Deletes the children of a grant. Reports its end if a child existed, or if no earlier process seems to have reported it. If
   * `status.ended` is not verified yet and no child existed, leaves the report to `reportUnverified`. The request stays. Resolves to false
   * without a grant, or if an earlier call has succeeded. Rejects as the client does.
   */
  async close(request: RequestView, cause: Cause, signal: AbortSignal): Promise<boolean> {
    if (!request.grant || this.#childrenDeleted.has(request.uid)) return false;
    const existed = await this.deleteChildren(request, signal);
    this.#childrenDeleted.add(request.uid);
    // If no child existed, and the request is being deleted or its conditions show the end, an earlier process has normally reported the
    // end. Prefer a missing report to a second one.
    const isReported = request.deleting || hasEndedCondition(request);
    if (!existed && !isReported && request.ended) this.#unverified.add(request.uid);
    else if (existed || !isReported) this.#deps.reporter.revoked(request, cause);
    return true;
  }

  /**
   * Reports an end that `close` left unreported, because `status.ended` was not verified yet: if a process with the server's keys signed
   * it, that process has reported the end. Call this once the signature has proved invalid.
   */
  reportUnverified(request: RequestView): void {
    if (this.#unverified.delete(request.uid)) this.#deps.reporter.revoked(request, { ending: 'GrantInvalid' });
  }

  /** Deletes the children of a request that no longer exists. Reports the end only if a child existed. Rejects as `deleteChildren` does. */
  async deleteChildrenOfVanished(request: RequestView, signal: AbortSignal): Promise<void> {
    if (!request.grant || this.#childrenDeleted.has(request.uid)) return;
    if (await this.deleteChildren(request, signal)) this.#deps.reporter.revoked(request, { ending: 'Deleted' });
  }

  /**
   * Deletes every child, and resolves to whether one existed or `deleteRoleBinding` deleted one before. Keeps objects that have the name of
   * a child but that the request does not own, and skips a Pod that already terminates within `deletionGraceS`. If the API server forbids a
   * deletion, deletes the other children before it rejects. Rejects at once on any other error, and the caller retries.
   */
  async deleteChildren(request: RequestView, signal: AbortSignal): Promise<boolean> {
    let existed = this.#roleBindingDeleted.has(request.uid);
    let forbidden: unknown;
    for (const [kind, resource] of revocationOrder) {
      if (kind === 'RoleBinding' && this.#roleBindingDeleted.has(request.uid)) continue;
      if (kind === 'Pod' && !this.#deps.kind.createsPod) continue;
      try {
        const deleted = await this.#deleteChild(request, kind, resource, signal);
        existed ||= deleted;
      } catch (error) {
        if (!isForbidden(error)) throw error;
        forbidden ??= error;
      }
    }
    if (forbidden !== undefined) throw forbidden;
    return existed;
  }

  /** Discards what this process recorded for the request with this uid. Call it when the request no longer exists. */
  forget(uid: string): void {
    this.#roleBindingDeleted.delete(uid);
    this.#childrenDeleted.delete(uid);
    this.#unverified.delete(uid);
    this.#finalizerRemoved.delete(uid);
    this.#requestDeleted.delete(uid);
    this.#retention.forget(uid);
  }

  async #deleteChild(
    request: RequestView,
    kind: RequestChild['kind'],
    resource: Resource,
    signal: AbortSignal,
  ): Promise<boolean> {
    const child = request.children.find((candidate) => candidate.kind === kind);
    // Do not use the name in the status: a client that can write the status could choose any object.
    const name = { namespace: request.namespace, name: childNameOf(request) };
    if (kind === 'Pod') {
      // The Pod already terminates within `deletionGraceS`. If this counted as a deletion, each restart while the node is down would report
      // the end again.
      const pod = this.#deps.pods.get(keyOf(name));
      if (pod?.nothingToRevoke && pod.requestRef?.uid === request.uid) return false;
    }
    const expected = child ? { uid: child.uid, ownerUid: request.uid } : { ownerUid: request.uid };
    return this.#deps.applier.delete(resource, name, expected, signal);
  }

  async #noLongerExists(resource: Resource, name: ObjectName, uid: string, signal: AbortSignal): Promise<boolean> {
    return (await findObject(this.#deps.client, resource, name, { signal }))?.metadata.uid !== uid;
  }

  /** Removes the server's finalizer, and keeps all others. */
  async #removeFinalizer(request: RequestView, signal: AbortSignal): Promise<void> {
    const index = request.finalizers.indexOf(revokeFinalizer);
    if (index < 0) return;
    const path = `/metadata/finalizers/${index}`;
    const ops = [
      { op: 'test', path: '/metadata/uid', value: request.uid },
      { op: 'test', path, value: revokeFinalizer },
      { op: 'remove', path },
    ] as const;
    try {
      await this.#deps.client.jsonPatch(this.#deps.kind.requestResource, request, ops, { signal });
      this.#finalizerRemoved.add(request.uid);
    } catch (error) {
      await this.#ignoreIfDeleted(request, error, signal);
    }
  }

  /** Rejects with `error`, unless the request no longer exists. Another request may have its name. */
  async #ignoreIfDeleted(request: RequestView, error: unknown, signal: AbortSignal): Promise<void> {
    if (isNotFound(error)) return;
    // 422: a `test` of the JSON Patch failed.
    const maybeReplaced = isConflict(error) || (error instanceof ApiError && error.code === 422);
    const isDeleted =
      maybeReplaced && (await this.#noLongerExists(this.#deps.kind.requestResource, request, request.uid, signal));
    if (!isDeleted) throw error;
  }
}

export interface RevokerDeps {
  readonly kind: AccessKind;
  readonly pods: Store<PodView>;
  readonly client: Client;
  readonly applier: Applier;
  readonly reporter: GrantReporter;
  readonly clock: Clock;
}
