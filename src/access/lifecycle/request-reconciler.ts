import type { Ended } from '../../api/access/ended.ts';
import type { Grant } from '../../api/access/grant.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
import { keyOf } from '../../api/object.ts';
import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { DeadlineSource } from '../../engine/sources/deadlines.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { isRefused } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import { failure } from '../conditions.ts';
import type { OwedReview, OwedReviews } from '../emergency/owed-reviews.ts';
import type { Signer } from '../signing/signer.ts';
import { byRequest } from '../stores/access-stores.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { LostRecordingView } from '../stores/lost-recording-view.ts';
import type { VoteView } from '../stores/vote-view.ts';
import { type Cause, causeText } from './cause.ts';
import type { Decider } from './decider.ts';
import { awaitsReviewText, owedApproval, reviewedApproval, verdictText } from './emergency-status.ts';
import { endedStatus } from './ended-status.ts';
import { type Ending, outcomeOf } from './ending.ts';
import type { Extender } from './extender.ts';
import type { GrantReporter } from './grant-reporter.ts';
import type { Granter } from './granter.ts';
import type { History } from './history.ts';
import { hasEndedCondition, isDeniedOrEnded, isRecordingLost } from './request-conditions.ts';
import { RequestDeadlines } from './request-deadlines.ts';
import { accessStartMs, hasVerifiedEnd } from './request-ends.ts';
import type { StatusWriter } from './request-status.ts';
import { approvalStatus, lostRecordingStatus } from './request-status.ts';
import type { RequesterAttestations } from './requester-attestations.ts';
import type { Revoker } from './revoker.ts';
import type { TemplateEdits } from './template-edits.ts';
import type { Votes } from './votes.ts';

/**
 * Lane of deadlines, revocations, deletions of requests and templates, and denials by vote. Its keys precede all others, and abort a
 * reconcile of the same request in the normal lane.
 */
export const revocationLane = 0;
/** Lane of grants that no longer give access, because their RoleBinding or their pod is deleted, and of ended requests to delete. */
export const cleanupLane = 1;
/** Lane of all other keys: decisions, openings, and updates. */
export const normalLane = 2;

/** A time in the past, epoch ms: requeues the key at once, in the order of its lane. */
const alreadyDueMs = 0;

/**
 * Reconciles one request: ends it if it expired, a user revoked, deleted, or denied it, or its grant is no longer valid or allowed; else
 * decides it, and then opens its grant. Keeps an ended request for a time, then deletes it. The check of expiry needs neither keys nor an
 * API call, so that neither can keep access open.
 */
export class RequestReconciler implements Reconciler {
  readonly #deps: RequestReconcilerDeps;
  readonly #deadlines: RequestDeadlines;
  /** By key: the request at its last reconcile. If it no longer exists, the server revokes its access from this copy. */
  readonly #lastReconciled = new Map<string, RequestView>();

  /**
   * By request uid: why the request ends, recorded after the server tried to delete the RoleBinding. From then on, the request ends in any
   * case, even if an extension is written afterwards.
   */
  readonly #endings = new Map<string, Cause>();

  /** uids of ended requests that the next reconcile deletes, in the cleanup lane. */
  readonly #toRemove = new Set<string>();

  /**
   * uids of ended requests that did not exceed the maximum (`History.surplus`) when they were last checked, so that they are not checked
   * again. If the end of another request pushes a request beyond the maximum, `#keepEnded` removes that uid and enqueues that request.
   */
  readonly #withinMaximum = new Set<string>();

  constructor(deps: RequestReconcilerDeps) {
    this.#deps = deps;
    this.#deadlines = new RequestDeadlines(deps.clock);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { status, decider, granter, revoker, attestations, signer } = this.#deps;
    const request = status.latest(key);
    const before = this.#lastReconciled.get(key);
    if (before && before.uid !== request?.uid) {
      // Anyone who can update the request can remove our finalizer, so the request may vanish with its access still open.
      if (!hasVerifiedEnd(before, signer)) await revoker.deleteChildrenOfVanished(before, signal);
      this.#forget(before);
    }
    if (!request) return done;
    if (before?.uid !== request.uid) attestations.observe(request);
    this.#lastReconciled.set(key, request);

    if (hasVerifiedEnd(request, signer)) return this.#keepEnded(request, signal);
    if (request.ended) return this.#endUnverified(request, request.ended, signal);
    const startedEnding = this.#endings.get(request.uid);
    if (startedEnding) return this.#end(request, startedEnding, signal);
    if (this.#isExpired(request)) return this.#end(request, { ending: 'Expired' }, signal);
    this.#scheduleEnd(request);
    const cause = await this.#earlyEnding(request, signal);
    if (cause) return this.#end(request, cause, signal);
    const denial = await this.#denialOfOpen(request, signal);
    if (denial) return this.#end(request, { ending: 'VoteDenied', denial }, signal);
    const current = await this.#showReview(await this.#showLostRecording(request, signal), signal);
    if (isDeniedOrEnded(current)) return done;
    if (current.grant) return this.#keepOpen(current, signal);

    const decision = await decider.decide(request, signal);
    if (decision.kind === 'waiting') return requeueAt(decision.untilMs);
    if (decision.kind === 'denied') return done;
    this.#lastReconciled.set(key, decision.request);
    this.#scheduleEnd(decision.request);
    return requeueAt(await granter.ensureOpen(decision.request, decision.plan, signal));
  }

  /** Opens the grant if it is not open yet, updates the status, and then decides the extension that the requester asked for, if any. */
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

  /** When the review becomes overdue, epoch ms. Undefined if none is owed, or if it is overdue already. */
  #overdueAtMs(owed: OwedReview | undefined): number | undefined {
    const reviewByMs = parseTime(owed?.reviewBy ?? '') ?? 0;
    return this.#deps.clock.now() < reviewByMs ? reviewByMs : undefined;
  }

  /**
   * Ends a request in up to four reconciles: the first deletes the RoleBinding, the second the other children, and the third writes the end
   * to the status, or deletes the request (see `#writeEnd`). If the request does not stay after its end, the fourth deletes it. All but the
   * first are in the cleanup lane, which is first in, first out. So if many grants of one kind end together, all RoleBindings are deleted
   * first, and status writes come last. The normal lane would be wrong: the deletion of the request enqueues the key in lane 0, which would
   * abort the running reconcile.
   */
  async #end(request: RequestView, cause: Cause, signal: AbortSignal): Promise<Result> {
    // If the grant is forged, the children in the status may be forged, too. Without them, the applier finds our objects by their owner.
    const trusted = cause.ending === 'GrantInvalid' ? { ...request, children: [] } : request;
    const existed = await this.#deps.revoker.deleteRoleBinding(trusted, signal);
    // `close` reports the end of a grant, and the decider a denial. Without our finalizer, an earlier leader has normally reported the end.
    const isReported = isDeniedOrEnded(request) || !request.finalizers.includes(revokeFinalizer);
    if (!request.grant && request.children.length === 0 && !isReported && !this.#endings.has(request.uid))
      this.#deps.reporter.endedWithoutAccess(request, endText(request, cause));
    this.#endings.set(request.uid, cause);
    if (existed) return at(alreadyDueMs, cleanupLane);
    if (await this.#deps.revoker.close(trusted, cause, signal)) return at(alreadyDueMs, cleanupLane);
    const ended = await this.#writeEnd(request, cause, signal);
    if (!ended) return this.#deps.revoker.remove(request, signal);
    this.#lastReconciled.set(request.key, ended);
    this.#forgetOpen(request.uid);
    return this.#keepEnded(ended, signal);
  }

  /**
   * Writes the signed end to the status. Resolves to the request as written. Undefined if the caller must delete the request at once
   * instead: this process has already deleted it, it is being deleted and its finalizer may be removed (`canRelease`), an earlier version
   * of the server denied it, the server has no keys, or the API server no longer accepts the object. While a review is owed, the last three
   * do not apply.
   */
  async #writeEnd(request: RequestView, cause: Cause, signal: AbortSignal): Promise<RequestView | undefined> {
    const { ending, denial } = cause;
    const { decider, edits, extender, revoker, reviews, history, signer, status, clock } = this.#deps;
    const owed = request.deleting || !request.grant ? undefined : reviews.of(request.uid);
    const wasDenied = isDeniedOrEnded(request) && !hasEndedCondition(request);
    if (revoker.hasRemoved(request) || (!owed && (wasDenied || !signer.hasKeys))) return undefined;
    if (request.deleting && revoker.canRelease(request)) return undefined;
    const nowMs = clock.now();
    const atMs = Math.min(nowMs, decider.requestEndMs(request), edits.latestEndMs(request));
    const by = denial?.spec.voter?.username;
    const how = outcomeOf(ending);
    const ended = history.end(request, { how, reason: ending, ...(by === undefined ? {} : { by }) }, atMs);
    const approval = owed && owedApproval(request, owed, nowMs);
    const reviewText = owed
      ? awaitsReviewText
      : request.approval?.state === 'Reviewed'
        ? `; ${verdictText(request.approval)}`
        : '';
    const text = `${endText(request, cause)}${denial?.spec.about === 'Review' ? '' : reviewText}`;
    // If the grant is forged, sign no refusal for it.
    const extensions = ending === 'GrantInvalid' ? undefined : extender.refuseUndecided(request);
    const end = { ending, text, ended, approval, extensions };
    try {
      return await status.write(request, endedStatus(request, end, nowMs), signal);
    } catch (error) {
      if (isRefused(error) && !owed) return undefined;
      throw error;
    }
  }

  /**
   * Keeps an ended request until `status.ended.until`, and until its emergency is reviewed, so that people can read how it ended; then
   * deletes it. Without an owed review, deletes it earlier if it exceeds a maximum (`History.surplus`). Users may delete it earlier, too.
   * Until then, calls the API server only to show the state of the review and a lost recording.
   */
  async #keepEnded(request: RequestView, signal: AbortSignal): Promise<Result> {
    const { revoker, reviews, history, deadlineSource, clock } = this.#deps;
    const { key, uid, ended } = request;
    const owed = request.deleting ? undefined : reviews.of(uid);
    if (owed) {
      await this.#showReview(await this.#showLostRecording(request, signal), signal);
      return requeueAt(this.#overdueAtMs(owed));
    }
    const [fromMs, untilMs] = [parseTime(ended?.at ?? '') ?? 0, parseTime(ended?.until ?? '') ?? 0];
    if (request.deleting || revoker.hasRemoved(request)) return revoker.remove(request, signal);
    const isPastRetention = this.#deadlines.hasPassed(uid, fromMs, untilMs);
    const surplus =
      isPastRetention || this.#withinMaximum.has(uid)
        ? []
        : history.surplus(request, (other) => revoker.hasRemoved(other));
    const isDue = isPastRetention || surplus.some((other) => other.uid === uid);
    if (isDue && this.#toRemove.has(uid)) return revoker.remove(request, signal);
    if (isDue) {
      // Deletions must not delay the end of other access: if thousands of requests ended together, they are also deleted together.
      this.#toRemove.add(uid);
      return at(alreadyDueMs, cleanupLane);
    }
    this.#toRemove.delete(uid);
    if (history.storeShowsEnd(request)) this.#withinMaximum.add(uid);
    for (const other of surplus) {
      if (this.#withinMaximum.delete(other.uid)) deadlineSource.set(other.key, clock.now());
    }
    await this.#showReview(await this.#showLostRecording(request, signal), signal);
    deadlineSource.set(key, this.#deadlines.nextCheckMs(uid, fromMs, untilMs));
    return done;
  }

  /**
   * Handles a request whose `status.ended` has no MAC that the cached keys verify. Closes its access first, without keys. Then reads the
   * keys again: if they verify the end, keeps the request; otherwise, deletes it. Rejects until the server has keys.
   */
  async #endUnverified(request: RequestView, ended: Ended, signal: AbortSignal): Promise<Result> {
    const { revoker, signer } = this.#deps;
    const trusted = { ...request, children: [] };
    if (await revoker.deleteRoleBinding(trusted, signal)) return at(alreadyDueMs, cleanupLane);
    await revoker.close(trusted, { ending: 'GrantInvalid' }, signal);
    if (await signer.isOurEnd(request, ended, signal)) return this.#keepEnded(request, signal);
    revoker.reportUnverified(trusted);
    return revoker.remove(request, signal);
  }

  /**
   * Writes to the status whether the review of emergency access is owed or overdue, or how people reviewed it. Resolves to the latest
   * version of the request.
   */
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

  /** Writes to the status once how people reviewed the emergency. Resolves as `#showReview`. */
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
    const end = request.conditions.find(
      ({ type, message }) => type === 'AccessStillValid' && message.endsWith(awaitsReviewText),
    );
    const updates = [condition];
    if (end) {
      const message = `${end.message.slice(0, -awaitsReviewText.length)}; ${verdictText(approval)}`;
      updates.push(failure('AccessStillValid', end.reason, message));
    }
    return status.write(request, approvalStatus(request, approval, clock.now(), updates), signal);
  }

  /**
   * Writes to the status that the recording of a session of the request was lost. Resolves to the latest version of the request.
   */
  async #showLostRecording(request: RequestView, signal: AbortSignal): Promise<RequestView> {
    const { lostRecordings, status, clock } = this.#deps;
    const [lost] = lostRecordings.byIndex(byRequest, request.uid);
    if (!lost || !request.grant || request.deleting || isRecordingLost(request)) return request;
    return status.write(request, lostRecordingStatus(request, lost, clock.now()), signal);
  }

  #isExpired(request: RequestView): boolean {
    return this.#hasPassed(request, this.#deps.decider.requestEndMs(request));
  }

  #hasPassed(request: RequestView, endMs: number): boolean {
    return Number.isFinite(endMs) && this.#deadlines.hasPassed(request.uid, accessStartMs(request), endMs);
  }

  /** Why the request must end before its deadline; undefined if it need not. Rejects if the keys cannot be read, and as the client does. */
  async #earlyEnding(request: RequestView, signal: AbortSignal): Promise<Cause | undefined> {
    if (request.revoked) return { ending: 'Revoked' };
    if (request.deleting) return { ending: 'Deleted' };
    const { grant } = request;
    if (!grant) return undefined;
    const { signer, edits } = this.#deps;
    if (this.#hasPassed(request, edits.latestEndMs(request))) return { ending: 'Shortened' };
    // Without keys, the server cannot verify a grant. It still ends one whose template or pod is deleted, or that an edit of the template
    // forbids.
    const lost = signer.hasKeys ? undefined : await this.#lostPrerequisite(request, grant, signal);
    if (lost) return lost;
    if (!(await signer.isOurGrant(request, grant, signal))) return { ending: 'GrantInvalid' };
    return this.#lostPrerequisite(request, grant, signal);
  }

  /** The valid vote in the store that denies granted access, and so ends it; undefined if there is none. */
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

  /**
   * Sets the deadline at which the request is enqueued to end. Call it before any API call for the request, so that a failing call cannot
   * delay the end.
   */
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
  readonly attestations: RequesterAttestations;
  readonly votes: Votes;
  readonly templates: Store<TemplateView>;
  readonly edits: TemplateEdits;
  readonly reviews: OwedReviews;
  readonly lostRecordings: Store<LostRecordingView>;
  readonly history: History;
  readonly reporter: GrantReporter;
  readonly signer: Signer;
  readonly revoker: Revoker;
  /** Enqueues the key of a request at its deadline. */
  readonly deadlineSource: DeadlineSource;
}

/** Why the request ended, as a clause for its condition. */
function endText({ spec, grant }: RequestView, cause: Cause): string {
  if (cause.ending === 'Expired' && !grant) return 'it was not decided in time; create a new request';
  const { revokedReason } = spec;
  return cause.ending === 'Revoked' && revokedReason !== undefined
    ? `${causeText(cause)}: ${revokedReason}`
    : causeText(cause);
}

/** Requeues the key at the earliest of these times, epoch ms. */
function requeueAt(...timesMs: readonly (number | undefined)[]): Result {
  const nextMs = Math.min(...timesMs.filter((timeMs) => timeMs !== undefined));
  return Number.isFinite(nextMs) ? at(nextMs, normalLane) : done;
}
