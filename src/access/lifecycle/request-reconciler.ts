import type { Grant } from '../../api/access/grant.ts';
import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { DeadlineSource } from '../../engine/sources/deadlines.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { Decider } from './decider.ts';
import type { Ending } from './ending.ts';
import { GrantDeadlines } from './grant-deadline.ts';
import type { Granter } from './granter.ts';
import type { StatusWriter } from './request-status.ts';
import { isDenied } from './request-status.ts';
import type { RequesterAttestations } from './requester-attestations.ts';
import type { Revoker } from './revoker.ts';
import type { TemplateEdits } from './template-edits.ts';

/** Lane of expiries and revocations. They precede all other keys, and abort a reconcile of the same request in the normal lane. */
export const revocationLane = 0;
/** Lane of grants that no longer give access, because their RoleBinding or their pod is deleted. */
export const cleanupLane = 1;
/** Lane of all other keys: decisions, openings, and updates. */
export const normalLane = 2;

/** A time in the past, epoch ms: requeues the key at once, in the order of its lane. */
const alreadyDueMs = 0;

/**
 * Reconciles one request: ends it if it expired, was revoked or deleted, or its grant is no longer allowed; else decides it, and then opens
 * its grant. It checks expiry first, by the grant alone, so that no other state can keep access open.
 */
export class RequestReconciler implements Reconciler {
  readonly #deps: RequestReconcilerDeps;
  readonly #deadlines: GrantDeadlines;
  /** By key: the request at its last reconcile. If it no longer exists, the server revokes its access from this copy. */
  readonly #lastReconciled = new Map<string, RequestView>();

  constructor(deps: RequestReconcilerDeps) {
    this.#deps = deps;
    this.#deadlines = new GrantDeadlines(deps.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { status, decider, granter, revoker, attestations } = this.#deps;
    const request = status.latest(key);
    const before = this.#lastReconciled.get(key);
    if (before && before.uid !== request?.uid) {
      // Anyone who can update the request can remove our finalizer, so the request may vanish with its access still open.
      await revoker.deleteChildrenOfVanished(before, signal);
      this.#forget(before);
    }
    if (!request) return done;
    if (before?.uid !== request.uid) attestations.observe(request);
    this.#lastReconciled.set(key, request);

    if (this.#isExpired(request)) return this.#end(request, 'Expired', signal);
    this.#scheduleEnd(request);
    const ending = await this.#earlyEnding(request, signal);
    if (ending) return this.#end(request, ending, signal);
    if (isDenied(request)) return done;
    if (request.grant) return requeueAt(await granter.ensureOpen(request, undefined, signal));

    const decision = await decider.decide(request, signal);
    if (decision.kind !== 'granted') return done;
    this.#lastReconciled.set(key, decision.request);
    this.#scheduleEnd(decision.request);
    return requeueAt(await granter.ensureOpen(decision.request, decision.plan, signal));
  }

  /**
   * Ends a grant in two reconciles, unless the first deletes no RoleBinding. The second has a lower lane: if many grants of one kind end
   * together, the RoleBindings that wait in the queue precede all other children.
   */
  async #end(request: RequestView, ending: Ending, signal: AbortSignal): Promise<Result> {
    // If the grant is forged, the children in the status may be forged too. Without them, the applier finds ours by their owner.
    const trusted = ending === 'GrantInvalid' ? { ...request, children: [] } : request;
    if (await this.#deps.revoker.deleteRoleBinding(trusted, signal)) return at(alreadyDueMs, cleanupLane);
    return this.#deps.revoker.end(trusted, ending, signal);
  }

  #isExpired(request: RequestView): boolean {
    return this.#hasPassed(request, this.#deps.decider.endOf(request));
  }

  #hasPassed(request: RequestView, endMs: number): boolean {
    return Number.isFinite(endMs) && this.#deadlines.hasPassed(request.uid, request.createdAtMs, endMs);
  }

  async #earlyEnding(request: RequestView, signal: AbortSignal): Promise<Ending | undefined> {
    if (request.revoked) return 'Revoked';
    if (request.deleting) return 'Deleted';
    const { grant } = request;
    if (!grant) return undefined;
    const { signer, edits } = this.#deps;
    if (this.#hasPassed(request, edits.endOf(request))) return 'Shortened';
    // Without keys, the server cannot verify grants and opens none. It still ends grants without template or pod, or that an edit forbids.
    const lost = signer.hasKeys ? undefined : await this.#lostPrerequisite(request, grant, signal);
    if (lost) return lost;
    if (!(await signer.isOurGrant(request, grant, signal))) return 'GrantInvalid';
    return this.#lostPrerequisite(request, grant, signal);
  }

  async #lostPrerequisite(request: RequestView, grant: Grant, signal: AbortSignal): Promise<Ending | undefined> {
    const { revoker, edits } = this.#deps;
    return (await revoker.lostPrerequisite(request, grant, signal)) ?? edits.ending(request, signal);
  }

  /** Call it before any API call for the request, so that a failing call cannot delay the end. */
  #scheduleEnd(request: RequestView): void {
    const endMs = Math.min(this.#deps.decider.endOf(request), this.#deps.edits.endOf(request));
    this.#deps.deadlineSource.set(request.key, this.#deadlines.nextCheckMs(request.uid, request.createdAtMs, endMs));
  }

  #forget({ key, uid }: RequestView): void {
    this.#lastReconciled.delete(key);
    this.#deadlines.forget(uid);
    this.#deps.deadlineSource.delete(key);
    this.#deps.status.forget(key);
    this.#deps.edits.forget(uid);
    this.#deps.granter.forget(uid);
    this.#deps.revoker.forget(uid);
  }
}

interface RequestReconcilerDeps {
  readonly clock: Clock;
  readonly status: StatusWriter;
  readonly decider: Decider;
  readonly granter: Granter;
  readonly attestations: RequesterAttestations;
  readonly edits: TemplateEdits;
  readonly signer: Signer;
  readonly revoker: Revoker;
  /** Enqueues the key of a request at its deadline. */
  readonly deadlineSource: DeadlineSource;
}

const requeueAt = (atMs: number | undefined): Result => (atMs === undefined ? done : at(atMs, normalLane));
