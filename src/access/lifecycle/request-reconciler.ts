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

/** Expiries and revocations overtake everything else in the queue, and abort what is being done for the same request. */
export const revocationLane = 0;
/** For grants that let nobody in any more: their RoleBinding or their pod is gone. */
export const cleanupLane = 1;
export const normalLane = 2;

/** Any instant that has passed: the next turn comes as soon as its lane's does. */
const alreadyDueMs = 0;

/**
 * The life of a request, one key at a time: end it if it is over, else decide it, else bring its grant about.
 * The end comes first and depends on nothing but the grant, so that no other state can keep access open.
 */
export class RequestReconciler implements Reconciler {
  readonly #deps: RequestReconcilerDeps;
  readonly #deadlines: GrantDeadlines;
  /** By key: the request as it was last seen, to close what it opened and forget it should it be gone at the next look. */
  readonly #seen = new Map<string, RequestView>();

  constructor(deps: RequestReconcilerDeps) {
    this.#deps = deps;
    this.#deadlines = new GrantDeadlines(deps.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { status, decider, granter, revoker, attestations } = this.#deps;
    const request = status.latest(key);
    const before = this.#seen.get(key);
    if (before && before.uid !== request?.uid) {
      // Whoever may update a request can force our finalizer off.
      await revoker.closeVanished(before, signal);
      this.#forget(before);
    }
    if (!request) return done;
    if (before?.uid !== request.uid) attestations.observe(request);
    this.#seen.set(key, request);

    if (this.#isExpired(request)) return this.#end(request, 'Expired', signal);
    this.#scheduleEnd(request);
    const ending = await this.#earlyEnding(request, signal);
    if (ending) return this.#end(request, ending, signal);
    if (isDenied(request)) return done;
    if (request.grant) return requeueAt(await granter.ensureOpen(request, undefined, signal));

    const decision = await decider.decide(request, signal);
    if (decision.kind !== 'granted') return done;
    this.#seen.set(key, decision.request);
    this.#scheduleEnd(decision.request);
    return requeueAt(await granter.ensureOpen(decision.request, decision.plan, signal));
  }

  /** In two turns: of many grants that end together, each loses its RoleBinding before the remains of any are looked after. */
  async #end(request: RequestView, ending: Ending, signal: AbortSignal): Promise<Result> {
    // What stands beside a forged grant is no better; which children are ours is then found out by their owner.
    const ended = ending === 'GrantInvalid' ? { ...request, children: [] } : request;
    if (await this.#deps.revoker.deleteRoleBinding(ended, signal)) return at(alreadyDueMs, cleanupLane);
    return this.#deps.revoker.end(ended, ending, signal);
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
    // Without keys nothing can be verified and nothing more is opened, but what has lost its ground is closed all the same.
    const lost = signer.hasKeys ? undefined : await this.#lostPrerequisite(request, grant, signal);
    if (lost) return lost;
    if (!(await signer.isOurGrant(request, grant, signal))) return 'GrantInvalid';
    return this.#lostPrerequisite(request, grant, signal);
  }

  async #lostPrerequisite(request: RequestView, grant: Grant, signal: AbortSignal): Promise<Ending | undefined> {
    const { revoker, edits } = this.#deps;
    return (await revoker.lostPrerequisite(request, grant, signal)) ?? edits.ending(request, signal);
  }

  /** Set before anything is tried, so that no failure in between can make the end late. */
  #scheduleEnd(request: RequestView): void {
    const endMs = Math.min(this.#deps.decider.endOf(request), this.#deps.edits.endOf(request));
    this.#deps.ends.set(request.key, this.#deadlines.nextCheckMs(request.uid, request.createdAtMs, endMs));
  }

  #forget({ key, uid }: RequestView): void {
    this.#seen.delete(key);
    this.#deadlines.forget(uid);
    this.#deps.ends.delete(key);
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
  /** Emits a request's key when its end has come. */
  readonly ends: DeadlineSource;
}

const requeueAt = (atMs: number | undefined): Result => (atMs === undefined ? done : at(atMs, normalLane));
