import type { ApprovalEntry } from '../../api/access/access-config.ts';
import type { Grant } from '../../api/access/grant.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import { keyOf } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { durationText } from '../../kit/go-duration.ts';
import { own } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import type { AccessKind } from '../access-kind.ts';
import { alreadyHolds, templateState } from '../admission-reads.ts';
import type { Plan } from '../builders/plan.ts';
import type { OwedReviews } from '../emergency/owed-reviews.ts';
import { type PolicyCheck, requestUncertified } from '../policies/policy-check.ts';
import { type ChosenDuration, chooseDuration } from '../policy/duration-choice.ts';
import { durationBoundsOf } from '../policy/emergency-policy.ts';
import { grantableViolations, rulesViolations, withoutExecViolations } from '../policy/granted-rules.ts';
import { countsFromOpening, latestOpeningMs } from '../policy/opening.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import { reasonLink } from '../policy/reason.ts';
import { grantPolicy, isEligibleByGroup } from '../policy/request-policy.ts';
import { gatewayRulesViolations } from '../policy/session-policy.ts';
import type { CountedVote } from '../policy/vote-count.ts';
import { accessEndMs, type RequestView, type TemplateView } from '../stores/access-views.ts';
import type { TemplateAuthors } from '../template/template-authors.ts';
import {
  approvalOf,
  approvedBy,
  type Due,
  deniedBy,
  timedOut,
  type Waiting,
  waitingCondition,
} from './approval-status.ts';
import { openedByEmergency, reviewOf } from './emergency-status.ts';
import { deniedStatus } from './ended-status.ts';
import type { GrantQuota } from './grant-quota.ts';
import type { GrantReporter } from './grant-reporter.ts';
import { withoutRequester } from './grant-reporter.ts';
import type { History } from './history.ts';
import type { OpeningDecider } from './opening-decider.ts';
import type { StatusWriter } from './request-status.ts';
import { awaitPolicies, grantedStatus, isUnchanged, waitingStatus } from './request-status.ts';
import { retainedUntilMs } from './retention.ts';
import { denialIn, type JudgedVote } from './votes.ts';

type Decision =
  | { readonly kind: 'granted'; readonly request: RequestView; readonly plan: Plan }
  | { readonly kind: 'denied' }
  /** For an event, at most until `untilMs` (epoch ms). */
  | { readonly kind: 'waiting'; readonly untilMs?: number };

/** After `latestOpeningMs`, an approved request waits this long for what prevents its grant. */
const readyGraceMs = 10 * 60_000;
const authorPermissionsMaxAgeMs = 60_000;

const noRequester = { username: '', uid: '', groups: [] };

const noRequesterWritten: Violation = {
  code: 'MissingIdentity',
  message:
    'spec.requester is missing: the API server did not call the webhooks of drawbridge; create a new request; if that is denied too, ask an administrator to apply the webhook configurations',
  field: 'spec.requester',
  status: 403,
};

const tooLate: Violation = {
  code: 'TooLate',
  message: 'the granted time passed before access could open; create a new request',
  status: 422,
};

/**
 * Decides requests that have no grant, with at most one status write:
 *     create ─→ waiting (votes, start, claim, or a template that is not ready) ─→ granted
 *        └──────────────┴─→ denied
 * The write has an optimistic lock on the resourceVersion of the request.
 */
export class Decider {
  readonly #deps: DeciderDeps;

  constructor(deps: DeciderDeps) {
    this.#deps = deps;
  }

  /** Epoch ms: `accessEndMs`, or `retainedUntilMs` without a grant. */
  requestEndMs(request: RequestView): number {
    return accessEndMs(request) ?? retainedUntilMs(request, this.#templateOf(request)?.spec.accessConfig);
  }

  /** The caller opens a granted request. Rejects with a 409 ApiError if the request changed. */
  async decide(request: RequestView, signal: AbortSignal): Promise<Decision> {
    if (!request.spec.requester) return this.#deny(request, noRequesterWritten, signal);
    const template = this.#templateOf(request);
    if (!template) return this.#withoutTemplate(request, signal);
    const state = templateState(template);
    const proof = this.#deps.policies.assess(request.createdAtMs);
    if (proof === 'uncertified') return this.#deny(request, requestUncertified, signal);
    if (state.found && state.observedGeneration !== state.generation) return { kind: 'waiting' };
    // A denial counts also in a gap.
    if (proof === 'gap' && !this.#deps.openingDecider.mayBeDenied(request)) return this.#awaitPolicies(request, signal);

    const violation = await this.#policyViolation(request, template, signal);
    if (violation && violation.code !== 'TemplateNotReady') return this.#deny(request, violation, signal);
    const notReady = violation ?? (await this.#deps.authors.violation(template, authorPermissionsMaxAgeMs, signal));
    const fromOpening = countsFromOpening(request.spec, template.spec.accessConfig);
    // What may wait for votes, a start, or a claim also waits for this, or would have to wait
    // again.
    if (notReady && (!fromOpening || request.spec.emergency)) return this.#deny(request, notReady, signal);
    const duration = chooseDuration(request.spec.duration, durationBoundsOf(request.spec, template.spec.accessConfig));
    if ('code' in duration) return this.#deny(request, duration, signal);

    const { opening, votes } = await this.#deps.openingDecider.decide(request, template, signal);
    const denial = denialIn(votes);
    if (denial) {
      const by = denial.vote.spec.voter?.username;
      return this.#deny(request, deniedBy(denial), signal, approvalOf(opening, votes, 'Denied'), by);
    }
    if (opening.is === 'timedOut') return this.#deny(request, timedOut(opening), signal, approvalOf(opening, votes));
    const link = linkOf(request, template);
    const entries = template.spec.accessConfig.approvals?.all ?? [];
    const shown = { votes, link, notReady, entries };
    if (opening.is !== 'due') return this.#wait(request, opening, shown, signal);
    if (notReady) return this.#waitUntilReady(request, template, opening, { ...shown, notReady }, signal);
    return this.#grant(request, template, { opening, votes, duration, link, entries }, signal);
  }

  /** After a transient violation, a request whose duration counts from its opening waits. */
  async #grant(
    request: RequestView,
    template: TemplateView,
    { opening, votes, duration, link, entries }: Openable,
    signal: AbortSignal,
  ): Promise<Decision> {
    const fromOpening = countsFromOpening(request.spec, template.spec.accessConfig);
    // Timestamps have whole seconds.
    const startMs = fromOpening ? Math.floor(this.#deps.clock.now() / 1000) * 1000 : request.createdAtMs;
    const approvedMs = Math.min(duration.grantedMs, opening.maxMs);
    // The granter plans again with the stored time, so this plan must use it.
    const storedMs = Math.floor(approvedMs / 1000) * 1000;
    const isTooLate = (ms: number): boolean => startMs + ms <= this.#deps.clock.now();
    if (isTooLate(storedMs)) return this.#deny(request, tooLate, signal);

    const { accessConfig } = template.spec;
    const ruleViolation =
      rulesViolations(accessConfig.rules)[0] ??
      withoutExecViolations(accessConfig)[0] ??
      grantableViolations(accessConfig, this.#deps.grantable)[0] ??
      gatewayRulesViolations(accessConfig)[0];
    if (ruleViolation) return this.#deny(request, ruleViolation, signal);

    const subjects = subjectsOf(template.spec.accessConfig, request.spec.requester ?? noRequester);
    const terms = { subjects, durationMs: storedMs };
    const planned = await this.#deps.kind.plan(request, template, terms, signal);
    if ('violation' in planned) {
      const { violation } = planned;
      return fromOpening && !request.spec.emergency && isTransient(violation, template)
        ? this.#waitUntilReady(request, template, opening, { votes, link, notReady: violation, entries }, signal)
        : this.#deny(request, violation, signal);
    }

    // If the pod ends earlier by its template, so does the access: no one reads a later end.
    const podMs = podDurationMs(planned.plan);
    const durationMs = Math.min(storedMs, podMs);
    if (isTooLate(durationMs)) return this.#deny(request, tooLate, signal);

    const proof = await this.#deps.policies.certify(request.createdAtMs, signal);
    if (proof === 'gap') return this.#awaitPolicies(request, signal);
    if (proof === 'uncertified') return this.#deny(request, requestUncertified, signal);

    const grant = this.#grantOf(template, planned.plan, {
      startsAt: fromOpening ? formatTime(startMs) : undefined,
      endMs: startMs + durationMs,
      votes: opening.votes,
    });
    const quotaViolation = this.#deps.quota.reserve(request, grant, template.spec.accessConfig.maxGrants);
    if (quotaViolation) return this.#deny(request, quotaViolation, signal);
    const review = request.spec.emergency
      ? reviewOf(request, template, this.#deps.kind, this.#deps.clock.now())
      : undefined;
    // Before the grant, so that no emergency escapes its review.
    if (review) await this.#deps.reviews.add(review, signal);
    const approved = review ? openedByEmergency(review) : fromOpening ? approvedBy(opening, votes) : undefined;
    const approvedFor = approvedMs < duration.grantedMs ? `; approved for ${textOf(approvedMs)}` : '';
    const podEnds = podMs < storedMs ? `; the pod ends after ${textOf(podMs)} by its activeDeadlineSeconds` : '';
    const details = {
      duration: `${duration.message}${approvedFor}${podEnds}`,
      limits: planned.plan.limits ?? [],
      reasonLink: link,
      approved,
    };
    const status = grantedStatus(request, grant, details, this.#deps.clock.now());
    return { kind: 'granted', request: await this.#deps.status.write(request, status, signal), plan: planned.plan };
  }

  async #awaitPolicies(request: RequestView, signal: AbortSignal): Promise<Decision> {
    return { kind: 'waiting', untilMs: await awaitPolicies(request, this.#deps, signal) };
  }

  /** Denies it once the grace has passed. */
  #waitUntilReady(
    request: RequestView,
    template: TemplateView,
    opening: Due,
    shown: WaitingDetails & { readonly notReady: Violation },
    signal: AbortSignal,
  ): Promise<Decision> {
    const latestMs = latestOpeningMs({ ...request, config: template.spec.accessConfig }) ?? request.createdAtMs;
    const untilMs = latestMs + readyGraceMs;
    if (untilMs > this.#deps.clock.now())
      return this.#wait(request, { is: 'unready', progress: opening.progress, untilMs }, shown, signal);
    return this.#deny(request, shown.notReady, signal, approvalOf(opening, shown.votes));
  }

  async #wait(
    request: RequestView,
    opening: Waiting,
    { votes, link, notReady, entries }: WaitingDetails,
    signal: AbortSignal,
  ): Promise<Decision> {
    const nowMs = this.#deps.clock.now();
    const isLimited = this.#deps.quota.mayDeny(this.#templateOf(request)?.spec.accessConfig.maxGrants);
    const condition = waitingCondition(opening, { notReady, entries, isLimited });
    const shown = { approval: approvalOf(opening, votes), condition };
    const status = waitingStatus(request, shown, link, nowMs);
    if (!isUnchanged(request, status)) {
      await this.#deps.status.write(request, status, signal);
      if (opening.is === 'unready' && notReady) this.#deps.reporter.waits(request, notReady, opening.untilMs);
    }
    const untilMs = opening.is === 'scheduled' ? opening.atMs : opening.untilMs;
    // Only `TemplateNotReady` always ends with an event. Else decide again with newer answers.
    const mustPoll = opening.is === 'unready' && notReady?.code !== 'TemplateNotReady';
    return {
      kind: 'waiting',
      untilMs: mustPoll ? Math.min(untilMs, nowMs + authorPermissionsMaxAgeMs) : untilMs,
    };
  }

  #templateOf({ namespace, spec }: RequestView): TemplateView | undefined {
    return this.#deps.kind.templates.get(keyOf({ namespace, name: spec.templateName }));
  }

  async #policyViolation(
    request: RequestView,
    template: TemplateView,
    signal: AbortSignal,
  ): Promise<Violation | undefined> {
    const caller = request.spec.requester ?? noRequester;
    const { emergency } = request.spec;
    const byGroup = isEligibleByGroup(caller, template.spec.accessConfig.allowedGroups);
    const grantingTemplate = { kind: this.#deps.kind.templateKind, name: template.name, spec: template.spec };
    return firstViolation(grantPolicy, {
      operation: 'CREATE',
      kind: this.#deps.kind.requestKind,
      namespace: request.namespace,
      name: request.name,
      templateName: request.spec.templateName,
      caller,
      spec: request.spec,
      askedAtMs: request.createdAtMs,
      template: templateState(template),
      overdueReview: emergency
        ? this.#deps.reviews.overdueOf({
            user: caller,
            namespace: request.namespace,
            templateKind: this.#deps.kind.templateKind,
            template: template.name,
          })
        : undefined,
      alreadyHolds:
        !byGroup &&
        !emergency &&
        caller.username !== '' &&
        (await alreadyHolds(this.#deps.client, caller, request.namespace, grantingTemplate, signal)),
    });
  }

  /** Only a live read proves it. A template that violates its schema counts as not found. */
  async #withoutTemplate(request: RequestView, signal: AbortSignal): Promise<Decision> {
    const { client, kind } = this.#deps;
    const name = { namespace: request.namespace, name: request.spec.templateName };
    const found = await findObject(client, kind.templateResource, name, { signal });
    const read = found && readObject(accessOfTemplate(kind.templateKind).template, found);
    if (read?.ok) return { kind: 'waiting' };
    const template = `${kind.templateKind} ${keyOf(name)}`;
    const [error] = read?.errors ?? [];
    const message = error
      ? `${template} violates its schema: ${error.field} ${error.message}; ask its author to correct it, then create a new request`
      : `${template} does not exist; create a request that names an existing template`;
    return this.#deny(request, { code: 'TemplateNotFound', message, field: 'spec.templateName', status: 404 }, signal);
  }

  async #deny(
    request: RequestView,
    violation: Violation,
    signal: AbortSignal,
    approval?: RequestApproval,
    by?: string,
  ): Promise<Decision> {
    const nowMs = this.#deps.clock.now();
    const end = { how: 'Denied', reason: violation.code, ...(by === undefined ? {} : { by }) } as const;
    const ended = this.#deps.history.end(request, end, nowMs);
    const status = deniedStatus(request, violation, ended, nowMs, approval);
    await this.#deps.status.write(request, status, signal);
    const isCertified = this.#deps.policies.assess(request.createdAtMs) === 'certified';
    this.#deps.reporter.denied(isCertified ? request : withoutRequester(request), violation);
    return { kind: 'denied' };
  }

  #grantOf(template: TemplateView, plan: Plan, { startsAt, endMs, votes }: DecidedGrant): Grant {
    return {
      template: {
        kind: this.#deps.kind.templateKind,
        name: template.name,
        uid: template.uid,
        generation: template.generation,
      },
      subjects: plan.subjects,
      pod: plan.target,
      rules: plan.rules,
      ...(plan.session ? { session: plan.session } : {}),
      planHash: plan.hash,
      ...(startsAt === undefined ? {} : { startsAt }),
      ...(votes.length > 0 ? { votes: votes.map(({ uid }) => uid) } : {}),
      expiresAt: formatTime(endMs),
    };
  }
}

/** Milliseconds until the kubelet ends the planned pod; Infinity for an existing one. */
function podDurationMs({ pod }: Plan): number {
  const seconds = own(pod?.spec, 'activeDeadlineSeconds');
  return typeof seconds === 'number' ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

const textOf = (ms: number): string => durationText(BigInt(ms) * 1_000_000n);

interface Openable {
  readonly opening: Due;
  readonly votes: readonly JudgedVote[];
  readonly duration: ChosenDuration;
  readonly link: string | undefined;
  /** `approvals.all` of the template. */
  readonly entries: readonly ApprovalEntry[];
}

interface DecidedGrant {
  /** RFC 3339. Undefined if the duration counts from the creation of the request. */
  readonly startsAt: string | undefined;
  /** Epoch ms. */
  readonly endMs: number;
  readonly votes: readonly CountedVote[];
}

/** Violations that another object causes, and that can end without an edit of the template. */
const transientCodes: ReadonlySet<string> = new Set([
  'NoRunningPod',
  'TargetNotFound',
  'PodIsSelected',
  'ConfinementLost',
]);

/** A StatefulSet creates a pod of the same name again, so `InvalidTargetPod` can end there. */
const isTransient = ({ code }: Violation, { spec }: TemplateView): boolean =>
  transientCodes.has(code) || (code === 'InvalidTargetPod' && spec.controllerTargetRef?.kind === 'StatefulSet');

interface WaitingDetails {
  readonly votes: readonly JudgedVote[];
  readonly link: string | undefined;
  /** Why the server could not grant now. */
  readonly notReady: Violation | undefined;
  /** `approvals.all` of the template. */
  readonly entries: readonly ApprovalEntry[];
}

interface DeciderDeps {
  readonly kind: AccessKind;
  readonly client: Client;
  readonly clock: Clock;
  readonly status: StatusWriter;
  readonly reporter: GrantReporter;
  readonly openingDecider: OpeningDecider;
  readonly authors: TemplateAuthors;
  readonly history: History;
  readonly quota: GrantQuota;
  readonly reviews: OwedReviews;
  readonly policies: PolicyCheck;
  /** What templates may hand out in addition to the rules of every grant. */
  readonly grantable: readonly RbacRule[];
}

/** By `reason.link` of the template, such as the URL of a ticket. */
function linkOf({ spec: { reason } }: RequestView, template: TemplateView): string | undefined {
  const config = template.spec.accessConfig.reason;
  return config && reason !== undefined ? reasonLink(reason, config) : undefined;
}
