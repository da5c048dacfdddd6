import type { Grant } from '../../api/access/grant.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
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
import { childNameOf } from '../builders/plan.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { Ending } from './ending.ts';
import { GrantDeadlines } from './grant-deadline.ts';
import type { GrantReporter } from './grant-reporter.ts';
import { retainUntilMs } from './requester-attestations.ts';

/** What lets the requester in goes first. */
const revocationOrder = [
  ['RoleBinding', roleBindings],
  ['Role', roles],
  ['Pod', pods],
] as const satisfies readonly (readonly [RequestChild['kind'], Resource])[];

/** Ends grants: children first, then the request, then our hold on it. Every step may be repeated. */
export class Revoker {
  readonly #deps: RevokerDeps;
  /** uids of requests whose RoleBinding was there and was taken away. */
  readonly #roleBindingDeleted = new Set<string>();
  /** uids of requests whose children are gone, so that the events of our own deletes cause no further calls. */
  readonly #closed = new Set<string>();
  /** uids of requests that our hold was taken off: until the store has noticed, they look as if it were still there. */
  readonly #finalizerRemoved = new Set<string>();
  /** uids of requests that were deleted by us, for the same reason. */
  readonly #deleted = new Set<string>();
  readonly #retention: GrantDeadlines;

  constructor(deps: RevokerDeps) {
    this.#deps = deps;
    this.#retention = new GrantDeadlines(deps.clock);
  }

  /**
   * Why a live grant has nothing to stand on any more: its template or its pod is gone. A store may lag behind, so a live read has
   * the last word before anything is taken away.
   */
  async lostPrerequisite(request: RequestView, grant: Grant, signal: AbortSignal): Promise<Ending | undefined> {
    const { kind } = this.#deps;
    const template = { namespace: request.namespace, name: grant.template.name };
    if (kind.templates.get(keyOf(template))?.uid !== grant.template.uid) {
      if (await this.#isGone(kind.templateResource, template, grant.template.uid, signal)) return 'TemplateDeleted';
    }
    const podUid = grant.pod.uid ?? request.children.find((child) => child.kind === 'Pod')?.uid;
    const pod = { namespace: request.namespace, name: grant.pod.name };
    if (podUid !== undefined && this.#deps.pods.get(keyOf(pod))?.uid !== podUid) {
      if (await this.#isGone(pods, pod, podUid, signal)) return 'TargetPodGone';
    }
    return undefined;
  }

  /**
   * Takes away what lets the requester in. True when this call did so: the rest of the end is still to come. False when there was
   * nothing, and when it may not: somebody holds the RoleBinding and has put more into its Role than we have. Then the rest must not wait.
   */
  async deleteRoleBinding(request: RequestView, signal: AbortSignal): Promise<boolean> {
    const { uid } = request;
    if (!request.grant || this.#roleBindingDeleted.has(uid) || this.#closed.has(uid)) return false;
    try {
      const existed = await this.#close(request, 'RoleBinding', roleBindings, signal);
      if (existed) this.#roleBindingDeleted.add(uid);
      return existed;
    } catch (error) {
      if (isForbidden(error)) return false;
      throw error;
    }
  }

  async end(request: RequestView, ending: Ending, signal: AbortSignal): Promise<Result> {
    if (this.#finalizerRemoved.has(request.uid)) return done;
    if (request.grant && !this.#closed.has(request.uid)) {
      const existed = await this.closeChildren(request, signal);
      this.#closed.add(request.uid);
      // One that is on its way out and has nothing open was told of by whoever closed it.
      if (existed || !request.deleting) this.#deps.reporter.revoked(request, ending);
    }
    if (!request.deleting && !this.#deleted.has(request.uid)) {
      await this.#deps.client
        .delete(this.#deps.kind.requestResource, request, { uid: request.uid, signal })
        .catch((error: unknown) => this.#ignoreIfGone(request, error, signal));
      this.#deleted.add(request.uid);
    }
    const [fromMs, untilMs] = [request.createdAtMs, retainUntilMs(request)];
    if (!this.#retention.hasPassed(request.uid, fromMs, untilMs))
      return at(this.#retention.nextCheckMs(request.uid, fromMs, untilMs));
    await this.#removeFinalizer(request, signal);
    return done;
  }

  /** Closes what a request left behind that is gone itself; says nothing when somebody else has closed it before. */
  async closeVanished(request: RequestView, signal: AbortSignal): Promise<void> {
    if (!request.grant || this.#closed.has(request.uid)) return;
    if (await this.closeChildren(request, signal)) this.#deps.reporter.revoked(request, 'Deleted');
  }

  /**
   * Deletes every child that exists, and resolves to whether one did; an object of the same name that is not ours stays. Rejects when
   * one could not be closed, which keeps open none of the others but on a fault that may pass.
   */
  async closeChildren(request: RequestView, signal: AbortSignal): Promise<boolean> {
    let existed = this.#roleBindingDeleted.has(request.uid);
    let refusal: unknown;
    for (const [kind, resource] of revocationOrder) {
      if (kind === 'RoleBinding' && this.#roleBindingDeleted.has(request.uid)) continue;
      if (kind === 'Pod' && !this.#deps.kind.createsPod) continue;
      try {
        const deleted = await this.#close(request, kind, resource, signal);
        existed ||= deleted;
      } catch (error) {
        if (!isForbidden(error)) throw error;
        refusal ??= error;
      }
    }
    if (refusal !== undefined) throw refusal;
    return existed;
  }

  forget(uid: string): void {
    this.#roleBindingDeleted.delete(uid);
    this.#closed.delete(uid);
    this.#finalizerRemoved.delete(uid);
    this.#deleted.delete(uid);
    this.#retention.forget(uid);
  }

  async #close(
    request: RequestView,
    kind: RequestChild['kind'],
    resource: Resource,
    signal: AbortSignal,
  ): Promise<boolean> {
    const child = request.children.find((candidate) => candidate.kind === kind);
    // Not the name that the status says: whoever may write that could have us delete anything.
    const name = { namespace: request.namespace, name: childNameOf(request) };
    if (kind === 'Pod') {
      // Its node takes a moment, or is away; whoever deleted it has told of it.
      const pod = this.#deps.pods.get(keyOf(name));
      if (pod?.terminating && pod.madeFor?.uid === request.uid) return false;
    }
    const owner = child ? { uid: child.uid, ownerUid: request.uid } : { ownerUid: request.uid };
    return this.#deps.applier.delete(resource, name, owner, signal);
  }

  async #isGone(resource: Resource, name: ObjectName, uid: string, signal: AbortSignal): Promise<boolean> {
    return (await findObject(this.#deps.client, resource, name, { signal }))?.metadata.uid !== uid;
  }

  /** Takes our finalizer off, whatever others hang on to. */
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
      await this.#ignoreIfGone(request, error, signal);
    }
  }

  /** Rejects with `error`, unless the request is gone and another one may have its name: then nothing of ours is left to do. */
  async #ignoreIfGone(request: RequestView, error: unknown, signal: AbortSignal): Promise<void> {
    if (isNotFound(error)) return;
    const maybeReplaced = isConflict(error) || (error instanceof ApiError && error.code === 422);
    const isGone = maybeReplaced && (await this.#isGone(this.#deps.kind.requestResource, request, request.uid, signal));
    if (!isGone) throw error;
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
