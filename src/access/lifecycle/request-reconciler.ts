import { type Ending, outcomeOf } from '../../api/access/ending.ts';
import type { Grant } from '../../api/access/grant.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
import { keyOf } from '../../api/object.ts';
import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { DeadlineSource } from '../../engine/sources/deadlines.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { isForbidden, isRefused } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import type { OwedReview, OwedReviews } from '../emergency/owed-reviews.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { VoteView } from '../stores/vote-view.ts';
import { type Cause, causeText } from './cause.ts';
import type { Decider } from './decider.ts';
import { owedApproval, reviewedApproval } from './emergency-status.ts';
import { endedStatus, unclosedStatus } from './ended-status.ts';
import type { Extender } from './extender.ts';
import type { GrantReporter } from './grant-reporter.ts';
import type { Granter } from './granter.ts';
import type { History } from './history.ts';
import { hasEndedCondition, isDeniedOrEnded } from './request-conditions.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { accessStartMs } from './request-ends.ts';
import { approvalStatus, isUnchanged, type StatusWriter } from './request-status.ts';
import type { Revoker } from './revoker.ts';
import type { TemplateEdits } from './template-edits.ts';
import type { Votes } from './votes.ts';

/** Lane of what ends access: first, and it aborts a reconcile of the request in the normal lane. */
export const revocationLane = 0;
/** Lane of grants that no longer give access (RoleBinding or pod deleted), and of removals. */
export const cleanupLane = 1;
/** Lane of decisions, openings, and updates. */
export const normalLane = 2;

/** Epoch ms in the past: requeues the key at once, in the order of its lane. */
const alreadyDueMs = 0;

/**
 * The life of one request. A reconcile does the first of these that applies:
 *   ended                                                   → keep it for a time, then delete it
 *   expired, revoked, deleted, or denied                    → end it: RoleBinding, children, status
 *   granted                                                 → keep it open, extend it
 *   otherwise                                               → decide it, then open its grant
 */
export class RequestReconciler implements Reconciler {
  readonly #deps: RequestReconcilerDeps;
  readonly #deadlines: RequestDeadlines;
  /** By key. If the request vanishes, the server revokes its access from this copy. */
  readonly #lastReconciled = new Map<string, RequestView>();

  /** By request uid: why it ends, once its RoleBinding was to go. No later extension revives it. */
  readonly #endings = new Map<string, Cause>();

  /** uids of ended requests that the next reconcile deletes, in the cleanup lane. */
  readonly #toRemove = new Set<string>();

  /** uids of ended requests within the maximum (`History.surplus`), unless others push them out. */
  readonly #withinMaximum = new Set<string>();

  constructor(deps: RequestReconcilerDeps) {
    this.#deps = deps;
    this.#deadlines = new RequestDeadlines(deps.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { status, decider, granter, revoker } = this.#deps;
    const request = status.latest(key);
    const before = this.#lastReconciled.get(key);
    if (before && before.uid !== request?.uid) {
      // Anyone who can update the request can remove our finalizer, so access may still be open.
      if (!before.ended) await revoker.deleteChildrenOfVanished(before, signal);
      this.#forget(before);
    }
    if (!request) return done;
    this.#lastReconciled.set(key, request);

    if (request.ended) return this.#keepEnded(request, signal);
    const startedEnding = this.#endings.get(request.uid);
    if (startedEnding) return this.#end(request, startedEnding, signal);
    if (this.#isExpired(request)) return this.#end(request, { ending: 'Expired' }, signal);
    this.#scheduleEnd(request);
    const cause = await this.#earlyEnding(request, signal);
    if (cause) return this.#end(request, cause, signal);
    const denial = await this.#denialOfOpen(request, signal);
    if (denial) return this.#end(request, { ending: 'VoteDenied', denial }, signal);
    const current = await this.#showReview(request, signal);
    if (isDeniedOrEnded(current)) return done;
    if (current.grant) return this.#keepOpen(current, signal);

    const decision = await decider.decide(request, signal);
    if (decision.kind === 'waiting') return requeueAt(decision.untilMs);
    if (decision.kind === 'denied') return done;
    this.#lastReconciled.set(key, decision.request);
    this.#scheduleEnd(decision.request);
    return requeueAt(await granter.ensureOpen(decision.request, decision.plan, signal));
  }

  /** Opens the grant if it is not open yet, then decides the extension that was asked for. */
  async #keepOpen(request: RequestView, signal: AbortSignal): Promise<Result> {
    const { status, granter, extender } = this.#deps;
    const requeueMs = await granter.ensureOpen(request, undefined, signal);
    const current = status.latest(request.key);
    if (current?.uid === request.uid) {
      const extended = await extender.extend(current, signal);
      this.#lastReconciled.set(request.key, extended);
      this.#scheduleEnd(extended);
    }
    return requeueAt(requeueMs, this.#overdueAtMs(this.#deps.reviews.of(request.uid)));
  }

  /** Epoch ms. */
  #overdueAtMs(owed: OwedReview | undefined): number | undefined {
    const reviewByMs = parseTime(owed?.reviewBy ?? '') ?? 0;
    return this.#deps.clock.now() < reviewByMs ? reviewByMs : undefined;
  }

  /**
   * In up to four reconciles: RoleBinding, other children, status, removal. All but the first are
   * in the cleanup lane: if many grants end together, every RoleBinding goes first.
   */
  async #end(request: RequestView, cause: Cause, signal: AbortSignal): Promise<Result> {
    const existed = await this.#deps.revoker.deleteRoleBinding(request, signal);
    // `close` reports the end of a grant, the decider a denial; without our finalizer, an earlier
    // leader did.
    const isReported = isDeniedOrEnded(request) || !request.finalizers.includes(revokeFinalizer);
    if (!request.grant && request.children.length === 0 && !isReported && !this.#endings.has(request.uid))
      this.#deps.reporter.endedWithoutAccess(request, endText(request, cause));
    this.#endings.set(request.uid, cause);
    if (existed) return at(alreadyDueMs, cleanupLane);
    try {
      if (await this.#deps.revoker.close(request, cause, signal)) return at(alreadyDueMs, cleanupLane);
    } catch (error) {
      if (isForbidden(error)) await this.#showUnclosed(request, cause, error, signal);
      throw error;
    }
    const ended = await this.#writeEnd(request, cause, signal);
    if (!ended) return this.#deps.revoker.remove(request, signal);
    this.#lastReconciled.set(request.key, ended);
    this.#forgetOpen(request.uid);
    return this.#keepEnded(ended, signal);
  }

  /** Our permissions may lack its namespace, for example. */
  async #showUnclosed(request: RequestView, cause: Cause, error: unknown, signal: AbortSignal): Promise<void> {
    const { status, reporter, clock } = this.#deps;
    const message = `the server tries to end the access (${endText(request, cause)}), but the API server refuses: ${describe(error)}`;
    const shown = unclosedStatus(request, message, clock.now());
    if (isUnchanged(request, shown)) return;
    await status.write(request, shown, signal);
    reporter.notClosed(request, message);
  }

  /**
   * Writes the end. Undefined if the request is to be deleted at once instead. While a review is
   * owed, a refusal does not excuse the end.
   */
  async #writeEnd(request: RequestView, cause: Cause, signal: AbortSignal): Promise<RequestView | undefined> {
    const { ending, denial } = cause;
    const { decider, edits, extender, revoker, reviews, history, status, clock } = this.#deps;
    const owed = request.grant && reviews.of(request.uid);
    const wasDenied = isDeniedOrEnded(request) && !hasEndedCondition(request);
    if (request.deleting || revoker.hasRemoved(request)) return undefined;
    if (!owed && wasDenied) return undefined;
    const nowMs = clock.now();
    const atMs = Math.min(nowMs, decider.requestEndMs(request), edits.latestEndMs(request));
    const by = denial?.spec.voter?.username;
    const how = outcomeOf(ending);
    const ended = history.end(request, { how, reason: ending, ...(by === undefined ? {} : { by }) }, atMs);
    const approval = owed && owedApproval(request, owed, nowMs);
    const extensions = extender.refuseUndecided(request);
    const end = { ending, text: endText(request, cause), ended, approval, extensions };
    try {
      return await status.write(request, endedStatus(request, end, nowMs), signal);
    } catch (error) {
      if (isRefused(error) && !owed) return undefined;
      throw error;
    }
  }

  /**
   * Keeps it until `status.ended.keptUntil` and its review, so that people can read how it ended.
   * Beyond a maximum (`History.surplus`), it goes earlier.
   */
  async #keepEnded(request: RequestView, signal: AbortSignal): Promise<Result> {
    const { revoker, reviews, history, deadlineSource, clock } = this.#deps;
    const { key, uid, ended } = request;
    const owed = request.deleting ? undefined : reviews.of(uid);
    if (owed) {
      await this.#showReview(request, signal);
      return requeueAt(this.#overdueAtMs(owed));
    }
    const [fromMs, untilMs] = [parseTime(ended?.at ?? '') ?? 0, parseTime(ended?.keptUntil ?? '') ?? 0];
    if (request.deleting || revoker.hasRemoved(request)) return revoker.remove(request, signal);
    const isPastRetention = this.#deadlines.hasPassed(uid, fromMs, untilMs);
    const surplus =
      isPastRetention || this.#withinMaximum.has(uid)
        ? []
        : history.surplus(request, (other) => revoker.hasRemoved(other));
    const isDue = isPastRetention || surplus.some((other) => other.uid === uid);
    if (isDue && this.#toRemove.has(uid)) return revoker.remove(request, signal);
    if (isDue) {
      // If thousands of requests end together, their deletions must not delay the end of access.
      this.#toRemove.add(uid);
      return at(alreadyDueMs, cleanupLane);
    }
    this.#toRemove.delete(uid);
    if (history.storeShowsEnd(request)) this.#withinMaximum.add(uid);
    for (const other of surplus) {
      if (this.#withinMaximum.delete(other.uid)) deadlineSource.set(other.key, clock.now());
    }
    await this.#showReview(request, signal);
    deadlineSource.set(key, this.#deadlines.nextCheckMs(uid, fromMs, untilMs));
    return done;
  }

  /** Shows in the status whether the review of the emergency is owed, overdue, or done. */
  async #showReview(request: RequestView, signal: AbortSignal): Promise<RequestView> {
    const { reviews, status, reporter, clock } = this.#deps;
    if (!request.spec.emergency || !request.grant || request.deleting) return request;
    const owed = reviews.of(request.uid);
    if (!owed) return this.#showVerdict(request, signal);
    const approval = owedApproval(request, owed, clock.now());
    if (approval.state === request.approval?.state) return request;
    const written = await status.write(request, approvalStatus(request, approval, clock.now()), signal);
    if (approval.state === 'ReviewOverdue') reporter.reviewOverdue(request);
    return written;
  }

  async #showVerdict(request: RequestView, signal: AbortSignal): Promise<RequestView> {
    const { votes, status, clock } = this.#deps;
    if (request.approval?.state === 'Reviewed') return request;
    const { namespace, uid: requestUid, spec } = request;
    const { username: user = '', uid: userUid = '' } = spec.requester ?? {};
    const judged = await votes.judgeReview(
      { namespace, requestUid, template: spec.templateName, user, userUid },
      signal,
    );
    const { approval, condition } = reviewedApproval(request, judged);
    return status.write(request, approvalStatus(request, approval, clock.now(), [condition]), signal);
  }

  #isExpired(request: RequestView): boolean {
    return this.#hasPassed(request, this.#deps.decider.requestEndMs(request));
  }

  #hasPassed(request: RequestView, endMs: number): boolean {
    return Number.isFinite(endMs) && this.#deadlines.hasPassed(request.uid, accessStartMs(request), endMs);
  }

  async #earlyEnding(request: RequestView, signal: AbortSignal): Promise<Cause | undefined> {
    if (request.revoked) return { ending: 'Revoked' };
    if (request.deleting) return { ending: 'Deleted' };
    const { grant } = request;
    if (!grant) return undefined;
    const { edits } = this.#deps;
    if (this.#hasPassed(request, edits.latestEndMs(request))) return { ending: 'Shortened' };
    return this.#lostPrerequisite(request, grant, signal);
  }

  /** The valid vote in the store that denies access already granted. */
  async #denialOfOpen(request: RequestView, signal: AbortSignal): Promise<VoteView | undefined> {
    const { votes, templates } = this.#deps;
    if (!request.grant) return undefined;
    const template = templates.get(keyOf({ namespace: request.namespace, name: request.spec.templateName }));
    return template && votes.storedDenial(request, template, signal);
  }

  async #lostPrerequisite(request: RequestView, grant: Grant, signal: AbortSignal): Promise<Cause | undefined> {
    const { revoker, edits } = this.#deps;
    const lost = await revoker.lostPrerequisite(request, grant, signal);
    if (lost) return lost;
    const ending: Ending | undefined = await edits.endingReason(request, signal);
    return ending && { ending };
  }

  /** Call it before any API call for the request, so that a failing call cannot delay the end. */
  #scheduleEnd(request: RequestView): void {
    const endMs = Math.min(this.#deps.decider.requestEndMs(request), this.#deps.edits.latestEndMs(request));
    this.#deps.deadlineSource.set(request.key, this.#deadlines.nextCheckMs(request.uid, accessStartMs(request), endMs));
  }

  #forget({ key, uid }: RequestView): void {
    this.#lastReconciled.delete(key);
    this.#deadlines.forget(uid);
    this.#deps.deadlineSource.delete(key);
    this.#deps.status.forget(key);
    this.#forgetOpen(uid);
    this.#toRemove.delete(uid);
    this.#withinMaximum.delete(uid);
    this.#deps.revoker.forget(uid);
  }

  #forgetOpen(uid: string): void {
    this.#deps.edits.forget(uid);
    this.#deps.granter.forget(uid);
    this.#deps.extender.forget(uid);
    this.#endings.delete(uid);
  }
}

interface RequestReconcilerDeps {
  readonly clock: Clock;
  readonly status: StatusWriter;
  readonly decider: Decider;
  readonly granter: Granter;
  readonly extender: Extender;
  readonly votes: Votes;
  readonly templates: Store<TemplateView>;
  readonly edits: TemplateEdits;
  readonly reviews: OwedReviews;
  readonly history: History;
  readonly reporter: GrantReporter;
  readonly revoker: Revoker;
  readonly deadlineSource: DeadlineSource;
}

function endText({ spec, grant }: RequestView, cause: Cause): string {
  if (cause.ending === 'Expired' && !grant) return 'it was not decided in time; create a new request';
  const { revokedReason } = spec;
  return cause.ending === 'Revoked' && revokedReason !== undefined
    ? `${causeText(cause)}: ${revokedReason}`
    : causeText(cause);
}

/** Epoch ms; the earliest counts. */
function requeueAt(...timesMs: readonly (number | undefined)[]): Result {
  const nextMs = Math.min(...timesMs.filter((timeMs) => timeMs !== undefined));
  return Number.isFinite(nextMs) ? at(nextMs, normalLane) : done;
}
