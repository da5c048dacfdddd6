import type { Grant } from '../../api/access/grant.ts';
import { childNameOf, revokeFinalizer } from '../../api/access/names.ts';
import type { RequestChild } from '../../api/access/status.ts';
import { keyOf, type ObjectName, type Resource } from '../../api/object.ts';
import { pods, roleBindings, roles } from '../../api/resources.ts';
import { done, type Result } from '../../engine/result.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { ApiError, isConflict, isForbidden, isNotFound } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { Applier } from '../../rbac/applier.ts';
import type { AccessKind } from '../access-kind.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { GrantReporter } from './grant-reporter.ts';
import type { Memories } from './memory.ts';
import type { Cause } from './status.ts';

/** The RoleBinding first, because it gives access. */
const revocationOrder = [
  ['RoleBinding', roleBindings],
  ['Role', roles],
  ['Pod', pods],
] as const satisfies readonly (readonly [RequestChild['kind'], Resource])[];

/**
 * Ends grants: deletes the children, later the request, then removes our finalizer. Deletions are
 * idempotent. A stop between a deletion and its report can repeat the report, or lose it.
 */
export class Revoker {
  readonly #deps: RevokerDeps;
  constructor(deps: RevokerDeps) {
    this.#deps = deps;
  }

  /**
   * Its template or pod was deleted or replaced, or the pod ended. Reads live what the store lacks.
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
    // The phases Failed and Succeeded are final, so a store that lags behind is right.
    if (stored?.uid === podUid)
      return stored.ended === undefined ? undefined : { ending: 'TargetPodGone', podEnd: stored.ended };
    return (await this.#noLongerExists(pods, pod, podUid, signal)) ? { ending: 'TargetPodGone' } : undefined;
  }

  /**
   * Resolves to whether this call ended access: deleted the RoleBinding, or emptied it if
   * finalizers keep it. False on a 403, so that `close` deletes the rest.
   */
  async deleteRoleBinding(request: RequestView, signal: AbortSignal): Promise<boolean> {
    const memory = this.#deps.memories.of(request);
    if (!request.grant || memory.roleBindingDeleted || memory.childrenDeleted) return false;
    try {
      const existed = await this.#deleteChild(request, 'RoleBinding', roleBindings, signal);
      if (existed) memory.roleBindingDeleted = true;
      return existed;
    } catch (error) {
      if (isForbidden(error)) return false;
      throw error;
    }
  }

  /** Call it after `close`. */
  async remove(request: RequestView, signal: AbortSignal): Promise<Result> {
    const memory = this.#deps.memories.of(request);
    if (memory.finalizerRemoved) return done;
    if (!request.deleting && !memory.requestDeleted) {
      await this.#deps.client
        .delete(this.#deps.kind.requestResource, request, { uid: request.uid, signal })
        .catch((error: unknown) => this.#ignoreIfDeleted(request, error, signal));
      memory.requestDeleted = true;
    }
    await this.#removeFinalizer(request, signal);
    return done;
  }

  /** A store that lags behind may still show the request. */
  hasRemoved(request: RequestView): boolean {
    const memory = this.#deps.memories.find(request);
    return memory !== undefined && (memory.requestDeleted || memory.finalizerRemoved);
  }

  /** Deletes the children, and reports the end once. False without a grant, or if done before. */
  async close(request: RequestView, cause: Cause, signal: AbortSignal): Promise<boolean> {
    const memory = this.#deps.memories.of(request);
    if (!request.grant || memory.childrenDeleted) return false;
    const existed = await this.deleteChildren(request, signal);
    memory.childrenDeleted = true;
    // An earlier process has normally reported this end. Prefer a missing report to a second one.
    if (existed || !request.deleting) this.#deps.reporter.revoked(request, cause);
    return true;
  }

  /** The end is reported only if a child existed. */
  async deleteChildrenOfVanished(request: RequestView, signal: AbortSignal): Promise<void> {
    if (!request.grant || this.#deps.memories.find(request)?.childrenDeleted) return;
    if (await this.deleteChildren(request, signal)) this.#deps.reporter.revoked(request, { ending: 'Deleted' });
  }

  /**
   * Whether one existed. Keeps what the request does not own. Rejects with a 403 only after all.
   */
  async deleteChildren(request: RequestView, signal: AbortSignal): Promise<boolean> {
    const { roleBindingDeleted = false } = this.#deps.memories.find(request) ?? {};
    let existed = roleBindingDeleted;
    let forbidden: unknown;
    for (const [kind, resource] of revocationOrder) {
      if (kind === 'RoleBinding' && roleBindingDeleted) continue;
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

  async #deleteChild(
    request: RequestView,
    kind: RequestChild['kind'],
    resource: Resource,
    signal: AbortSignal,
  ): Promise<boolean> {
    const child = request.children.find((candidate) => candidate.kind === kind);
    // Not the name in the status: a client that can write the status could choose any object.
    const name = { namespace: request.namespace, name: childNameOf(request) };
    if (kind === 'Pod') {
      // If this counted, each restart while the node is down would report the end again.
      const pod = this.#deps.pods.get(keyOf(name));
      if (pod?.nothingToRevoke && pod.requestRef?.uid === request.uid) return false;
    }
    const expected = child ? { uid: child.uid, ownerUid: request.uid } : { ownerUid: request.uid };
    return this.#deps.applier.delete(resource, name, expected, signal);
  }

  async #noLongerExists(resource: Resource, name: ObjectName, uid: string, signal: AbortSignal): Promise<boolean> {
    return (await findObject(this.#deps.client, resource, name, { signal }))?.metadata.uid !== uid;
  }

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
      this.#deps.memories.of(request).finalizerRemoved = true;
    } catch (error) {
      await this.#ignoreIfDeleted(request, error, signal);
    }
  }

  /** Another request may have taken the name. */
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
  readonly memories: Memories;
}
