import { outcomeOf } from '../../api/access/ending.ts';
import { revokeFinalizer } from '../../api/access/names.ts';
import { at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { DeadlineSource } from '../../engine/sources/deadlines.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { CodedError, describe } from '../../kit/errors.ts';
import { isForbidden, isRefused } from '../../kube/errors.ts';
import type { OwedReviews } from '../emergency/owed-reviews.ts';
import {
  firstLookMs,
  type PolicyCheck,
  policiesAwaited,
  policyRetryMs,
  requestUncertified,
} from '../policies/policy-check.ts';
import type { RequestView } from '../stores/access-views.ts';
import { owedApproval } from './approval-status.ts';
import { type Extender, refuseUndecided } from './extender.ts';
import type { FactFinder } from './fact-finder.ts';
import type { Facts, Next } from './facts.ts';
import { type GrantReporter, withoutRequester } from './grant-reporter.ts';
import type { Granter, Opened } from './granter.ts';
import type { History } from './history.ts';
import type { Memories, RequestMemory } from './memory.ts';
import { next } from './next.ts';
import { accessStartMs, latestEndMs, requestEndMs } from './request-ends.ts';
import type { Revoker } from './revoker.ts';
import { type Cause, endText } from './status.ts';
import type { StatusWriter } from './status-writer.ts';

/** Lane of what ends access: first, and it aborts a reconcile of the request in the normal lane. */
export const revocationLane = 0;
/** Lane of grants that no longer give access (RoleBinding or pod deleted), and of removals. */
export const cleanupLane = 1;
/** Lane of decisions, openings, and updates. */
export const normalLane = 2;

/** Epoch ms in the past: requeues the key at once, in the order of its lane. */
const alreadyDueMs = 0;

type Step<Kind extends Next['do']> = Extract<Next, { do: Kind }>;

/**
 * The life of one request. A reconcile reads the present, and `next` says what to do; this does it.
 * Each status that it writes is that of `statusOf`.
 */
export class RequestReconciler implements Reconciler {
  readonly #deps: RequestReconcilerDeps;

  constructor(deps: RequestReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { status, revoker, memories, deadlineSource } = this.#deps;
    const request = status.latest(key);
    const vanished = memories.vanished(key, request?.uid);
    if (vanished) {
      // Anyone who can update the request can remove our finalizer, so access may still be open.
      if (!vanished.ended) await revoker.deleteChildrenOfVanished(vanished, signal);
      memories.forget(key);
      deadlineSource.delete(key);
      status.forget(key);
    }
    return request ? this.#proceed(request, signal) : done;
  }

  async #proceed(present: RequestView, signal: AbortSignal): Promise<Result> {
    const { clock, facts: finder, memories } = this.#deps;
    let request = present;
    const memory = memories.of(request);
    const nowMs = clock.now();
    let facts = finder.facts(request);
    this.#remember(request, facts);
    for (;;) {
      const step = next(request, facts, nowMs);
      switch (step.do) {
        case 'look':
          facts = { ...facts, ...(await finder.find(step, request, facts, signal)) };
          continue;
        case 'review':
          request = await this.#showReview(request, step, signal);
          // Not shown: another write came first, or the API server dropped it.
          if (request.approval?.state !== step.approval.state) return done;
          continue;
        case 'open': {
          const opened = await this.#deps.granter.ensureOpen(request, undefined, signal);
          if (opened === 'unproven' || 'violation' in opened) return this.#afterOpening(request, opened, signal);
          const latest = this.#deps.status.latest(request.key);
          if (latest?.uid !== request.uid || latest.ended) return requeueAt(opened.recheckMs);
          request = latest;
          facts = { ...facts, ...finder.changing(request), opened };
          continue;
        }
        case 'extend':
          this.#remember(await this.#deps.extender.extend(request, step, signal), facts);
          return requeueAt(step.untilMs);
        case 'end':
          return this.#end(request, memory, step.cause, signal);
        case 'deny':
          return this.#deny(request, step, signal);
        case 'wait':
          return this.#wait(request, step, signal);
        case 'await':
          return this.#awaitPolicies(request, signal);
        case 'grant':
          return this.#grant(request, facts, step, signal);
        case 'keep':
          return this.#keep(request, memory, facts, step);
        case 'remove':
          return this.#remove(request, memory, step, signal);
        case 'retry':
          throw new CodedError('PoliciesMissing', policiesAwaited);
        case 'rest':
          return requeueAt(step.untilMs);
      }
    }
  }
  /** Before any call, so that a failing one cannot delay the end. */
  #remember(request: RequestView, { template, endClockMs, cause }: Facts): void {
    const { memories, deadlineSource } = this.#deps;
    const memory = memories.of(request);
    memory.request = request;
    const endMs = requestEndMs(request, template);
    const checkedMs = Math.min(endMs, latestEndMs(request, template));
    // `next` ends it now. An alarm would repeat a failed end without backoff.
    if (request.ended || cause || endClockMs >= (request.grant ? checkedMs : endMs)) return;
    deadlineSource.set(request.key, memory.deadline.nextCheckMs(accessStartMs(request), checkedMs));
  }

  async #showReview(request: RequestView, step: Step<'review'>, signal: AbortSignal): Promise<RequestView> {
    const { approval, condition } = step;
    const shown = { is: 'reviewed', approval, ...(condition ? { condition } : {}) } as const;
    const written = await this.#deps.status.show(request, shown, signal);
    if (approval.state === 'ReviewOverdue') this.#deps.reporter.reviewOverdue(request);
    return written;
  }

  async #wait(request: RequestView, step: Step<'wait'>, signal: AbortSignal): Promise<Result> {
    const { status, reporter } = this.#deps;
    const { approval, condition, reasonLink, blocked, untilMs } = step;
    const written = await status.show(request, { is: 'waiting', approval, condition, reasonLink }, signal);
    if (written !== request && blocked) reporter.waits(request, blocked, blocked.untilMs);
    return requeueAt(untilMs);
  }

  /** Says so once the leader has looked. */
  async #awaitPolicies(request: RequestView, signal: AbortSignal): Promise<Result> {
    const { policies, status, clock } = this.#deps;
    const nowMs = clock.now();
    if (policies.isFirstLook) return requeueAt(nowMs + firstLookMs);
    await status.show(request, { is: 'unproven' }, signal);
    return requeueAt(nowMs + policyRetryMs);
  }

  async #grant(request: RequestView, facts: Facts, step: Step<'grant'>, signal: AbortSignal): Promise<Result> {
    const { status, granter, reviews } = this.#deps;
    // Before the grant, so that no emergency escapes its review.
    if (step.review) await reviews.add(step.review, signal);
    const granted = await status.show(request, step.shown, signal);
    // Measured from the start of access, which is new.
    this.#remember(granted, { ...facts, endClockMs: Number.NEGATIVE_INFINITY });
    const opened = await granter.ensureOpen(granted, step.plan, signal);
    return this.#afterOpening(granted, opened, signal);
  }

  #afterOpening(request: RequestView, opened: Opened, signal: AbortSignal): Promise<Result> | Result {
    if (opened === 'unproven') return this.#awaitPolicies(request, signal);
    if ('violation' in opened) return this.#deny(request, opened, signal);
    return requeueAt(opened.recheckMs);
  }

  async #deny(
    request: RequestView,
    { violation, approval, by }: Pick<Step<'deny'>, 'violation' | 'approval' | 'by'>,
    signal: AbortSignal,
  ): Promise<Result> {
    const { status, revoker, history, policies, reporter, clock } = this.#deps;
    if (request.grant) await revoker.deleteChildren(request, signal);
    const end = { how: 'Denied', reason: violation.code, ...(by === undefined ? {} : { by }) } as const;
    const ended = history.end(request, end, clock.now());
    await status.show(request, { is: 'denied', violation, ended, approval }, signal);
    const isKnown = request.grant
      ? violation !== requestUncertified
      : policies.assess(request.createdAtMs) === 'certified';
    reporter.denied(isKnown ? request : withoutRequester(request), violation);
    return done;
  }

  /**
   * In up to four reconciles: RoleBinding, other children, status, removal. All but the first are
   * in the cleanup lane: if many grants end together, every RoleBinding goes first.
   */
  async #end(request: RequestView, memory: RequestMemory, cause: Cause, signal: AbortSignal): Promise<Result> {
    const { revoker, reporter } = this.#deps;
    const existed = await revoker.deleteRoleBinding(request, signal);
    // `close` reports the end of a grant; without our finalizer, an earlier leader did.
    const isReported = memory.cause !== undefined || !request.finalizers.includes(revokeFinalizer);
    if (!request.grant && request.children.length === 0 && !isReported)
      reporter.endedWithoutAccess(request, endText(request, cause));
    memory.cause = cause;
    if (existed) return at(alreadyDueMs, cleanupLane);
    try {
      if (await revoker.close(request, cause, signal)) return at(alreadyDueMs, cleanupLane);
    } catch (error) {
      if (isForbidden(error)) await this.#showUnclosed(request, cause, error, signal);
      throw error;
    }
    const ended = await this.#writeEnd(request, cause, signal);
    return ended ? this.#proceed(ended, signal) : revoker.remove(request, signal);
  }

  /** Our permissions may lack its namespace, for example. */
  async #showUnclosed(request: RequestView, cause: Cause, error: unknown, signal: AbortSignal): Promise<void> {
    const message = `the server tries to end the access (${endText(request, cause)}), but the API server refuses: ${describe(error)}`;
    const written = await this.#deps.status.show(request, { is: 'unclosed', message }, signal);
    if (written !== request) this.#deps.reporter.notClosed(request, message);
  }

  /**
   * Writes the end. Undefined if the request is to be deleted at once instead. While a review is
   * owed, a refusal does not excuse the end.
   */
  async #writeEnd(request: RequestView, cause: Cause, signal: AbortSignal): Promise<RequestView | undefined> {
    const { facts, revoker, reviews, history, status, clock } = this.#deps;
    if (request.deleting || revoker.hasRemoved(request)) return undefined;
    const { template } = facts.changing(request);
    const owed = request.grant && reviews.of(request.uid);
    const nowMs = clock.now();
    const atMs = Math.min(nowMs, requestEndMs(request, template), latestEndMs(request, template));
    const by = cause.denial?.spec.voter?.username;
    const end = { how: outcomeOf(cause.ending), reason: cause.ending, ...(by === undefined ? {} : { by }) };
    const shown = {
      is: 'ended',
      cause,
      ended: history.end(request, end, atMs),
      approval: owed && owedApproval(request, owed, nowMs),
      extensions: refuseUndecided(request),
    } as const;
    try {
      return await status.show(request, shown, signal);
    } catch (error) {
      if (isRefused(error) && !owed) return undefined;
      throw error;
    }
  }

  #keep(request: RequestView, memory: RequestMemory, { surplus = [] }: Facts, { untilMs }: Step<'keep'>): Result {
    const { history, memories, deadlineSource, clock } = this.#deps;
    memory.removalQueued = false;
    if (history.storeShowsEnd(request)) memory.withinMaximum = true;
    for (const other of surplus) {
      const pushedOut = memories.find(other);
      if (pushedOut?.withinMaximum) deadlineSource.set(other.key, clock.now());
      if (pushedOut) pushedOut.withinMaximum = false;
    }
    const endedMs = parseTime(request.ended?.at ?? '') ?? 0;
    deadlineSource.set(request.key, memory.deadline.nextCheckMs(endedMs, untilMs));
    return done;
  }

  async #remove(request: RequestView, memory: RequestMemory, step: Step<'remove'>, signal: AbortSignal) {
    if (step.now || memory.removalQueued) return this.#deps.revoker.remove(request, signal);
    // If thousands of requests end together, their deletions must not delay the end of access.
    memory.removalQueued = true;
    return at(alreadyDueMs, cleanupLane);
  }
}

interface RequestReconcilerDeps {
  readonly clock: Clock;
  readonly status: StatusWriter;
  readonly facts: FactFinder;
  readonly memories: Memories;
  readonly granter: Granter;
  readonly extender: Extender;
  readonly revoker: Revoker;
  readonly reviews: OwedReviews;
  readonly policies: PolicyCheck;
  readonly history: History;
  readonly reporter: GrantReporter;
  readonly deadlineSource: DeadlineSource;
}

/** Epoch ms. */
const requeueAt = (untilMs: number | undefined): Result =>
  untilMs !== undefined && Number.isFinite(untilMs) ? at(untilMs, normalLane) : done;
