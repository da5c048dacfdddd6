import type { Grant } from '../../api/access/grant.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import { formatTime } from '../../kit/clock.ts';
import { durationText, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { own } from '../../kit/json-value.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import { templateState } from '../admission-reads.ts';
import type { Plan } from '../builders/plan.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import { requestUncertified } from '../policies/policy-check.ts';
import { chooseDuration } from '../policy/duration-choice.ts';
import { durationBoundsOf } from '../policy/emergency-policy.ts';
import { grantableViolations, rulesViolations, withoutExecViolations } from '../policy/granted-rules.ts';
import { type Approval, countsFromOpening, latestOpeningMs, type Opening, openingOf } from '../policy/opening.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import { reasonLink } from '../policy/reason.ts';
import { grantPolicy, isEligibleByGroup } from '../policy/request-policy.ts';
import { gatewayRulesViolations } from '../policy/session-policy.ts';
import { votesNeeded } from '../policy/vote-count.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import {
  approvalOf,
  approvedBy,
  type Due,
  deniedBy,
  emergencyApproval,
  timedOut,
  type Waiting,
  waitingCondition,
} from './approval-status.ts';
import { type Facts, look, type Next } from './facts.ts';
import type { GrantShown } from './status.ts';
import { approvalsOf, denialIn } from './votes.ts';

/** After `latestOpeningMs`, an approved request waits this long for what prevents its grant. */
const readyGraceMs = 10 * 60_000;
/** Until it decides again with newer answers. */
const pollMs = 60_000;

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

/** Without a grant: votes, start, claim, and a template that is not ready can let it wait. */
export function decide(request: RequestView, facts: Facts, nowMs: number): Next {
  const { spec, createdAtMs } = request;
  const { template, absence, proof } = facts;
  const deny = (violation: Violation, approval?: RequestApproval): Next => ({
    do: 'deny',
    violation,
    ...(approval ? { approval } : {}),
  });
  if (!spec.requester) return deny(noRequesterWritten);
  if (!template) {
    if (absence === undefined) return look('absence');
    return absence ? deny(absence) : { do: 'rest' };
  }
  const { observedGeneration, generation } = templateState(template);
  if (proof === 'uncertified') return deny(requestUncertified);
  if (observedGeneration !== generation) return { do: 'rest' };
  // A denial counts also in a gap.
  if (proof === 'gap' && !facts.mayBeDenied) return { do: 'await' };

  const config = template.spec.accessConfig;
  const mustHold = !isEligibleByGroup(spec.requester, config.allowedGroups) && !spec.emergency;
  if (mustHold && spec.requester.username !== '' && facts.held === undefined) return look('held');
  const violation = policyViolation(request, template, facts);
  if (violation && violation.code !== 'TemplateNotReady') return deny(violation);
  if (!violation && facts.author === undefined) return look('author');
  const notReady = violation ?? facts.author ?? undefined;
  // What may wait for votes, a start, or a claim also waits for this, or would have to wait again.
  const mayWait = countsFromOpening(spec, config) && !spec.emergency;
  if (notReady && !mayWait) return deny(notReady);
  const duration = chooseDuration(spec.duration, durationBoundsOf(spec, config));
  if ('code' in duration) return deny(duration);

  const openingBy = (approvals: readonly Approval[]): Opening => openingOf({ ...request, config, approvals }, nowMs);
  const asked = spec.emergency ? undefined : config.approvals;
  if (!facts.votes) {
    const needed = asked && (openingBy([]).is === 'pending' ? votesNeeded(asked.all) : 0);
    return { do: 'look', at: 'votes', about: 'Access', needed };
  }
  const { votes } = facts;
  const opening = openingBy(approvalsOf(votes));
  const denial = denialIn(votes);
  if (denial) {
    const by = denial.vote.spec.voter?.username;
    return { ...deny(deniedBy(denial), approvalOf(opening, votes, 'Denied')), ...(by === undefined ? {} : { by }) };
  }
  if (opening.is === 'timedOut') return deny(timedOut(opening), approvalOf(opening, votes));
  if (opening.is !== 'due') return wait(request, template, facts, opening, notReady, nowMs);
  const waitUntilReady = (why: Violation): Next => {
    const untilMs = (latestOpeningMs({ ...request, config }) ?? createdAtMs) + readyGraceMs;
    if (untilMs <= nowMs) return deny(why, approvalOf(opening, votes));
    return wait(request, template, facts, { is: 'unready', progress: opening.progress, untilMs }, why, nowMs);
  };
  if (notReady) return waitUntilReady(notReady);

  // Timestamps have whole seconds.
  const startMs = countsFromOpening(spec, config) ? Math.floor(nowMs / 1000) * 1000 : createdAtMs;
  const approvedMs = Math.min(duration.grantedMs, opening.maxMs);
  // The granter plans again with the stored time, so this plan must use it.
  const storedMs = Math.floor(approvedMs / 1000) * 1000;
  if (startMs + storedMs <= nowMs) return deny(tooLate);
  const ruleViolation =
    rulesViolations(config.rules)[0] ??
    withoutExecViolations(config)[0] ??
    grantableViolations(config, facts.grantable)[0] ??
    gatewayRulesViolations(config)[0];
  if (ruleViolation) return deny(ruleViolation);
  if (!facts.plan)
    return { do: 'look', at: 'plan', terms: { subjects: subjectsOf(config, spec.requester), durationMs: storedMs } };
  const { planned, doneMs } = facts.plan;
  if ('violation' in planned)
    return mayWait && isTransient(planned.violation, template)
      ? waitUntilReady(planned.violation)
      : deny(planned.violation);
  // If the pod ends earlier by its template, so does the access: no one reads a later end.
  const podMs = podDurationMs(planned.plan);
  const endMs = startMs + Math.min(storedMs, podMs);
  if (endMs <= doneMs) return deny(tooLate);
  if (facts.certified === undefined) return look('certified');
  if (facts.certified === 'gap') return { do: 'await' };
  if (facts.certified === 'uncertified') return deny(requestUncertified);

  const startsAt = countsFromOpening(spec, config) ? { startsAt: formatTime(startMs) } : {};
  const grant = grantOf(template, facts, planned.plan, {
    ...startsAt,
    ...votesOf(opening),
    expiresAt: formatTime(endMs),
  });
  if (facts.limit === undefined) return { do: 'look', at: 'limit', grant };
  if (facts.limit) return deny(facts.limit);
  const approvedFor = approvedMs < duration.grantedMs ? `; approved for ${textOf(approvedMs)}` : '';
  const podEnds = podMs < storedMs ? `; the pod ends after ${textOf(podMs)} by its activeDeadlineSeconds` : '';
  const review = spec.emergency ? owedReviewOf(request, template, facts, nowMs) : undefined;
  const byVotes = mayWait ? approvedBy(opening, votes) : undefined;
  const shown: GrantShown = {
    is: 'granted',
    grant,
    duration: `${duration.message}${approvedFor}${podEnds}`,
    limits: planned.plan.limits ?? [],
    reasonLink: linkOf(request, template),
    approved: review ? emergencyApproval(review) : byVotes,
  };
  return { do: 'grant', shown, plan: planned.plan, review };
}

function policyViolation(
  { namespace, name, spec, createdAtMs }: RequestView,
  template: TemplateView,
  { kind: { requestKind }, overdue, held = false }: Facts,
): Violation | undefined {
  return firstViolation(grantPolicy, {
    operation: 'CREATE',
    kind: requestKind,
    namespace,
    name,
    templateName: spec.templateName,
    caller: spec.requester ?? noRequester,
    spec,
    askedAtMs: createdAtMs,
    template: templateState(template),
    overdueReview: overdue,
    alreadyHolds: held,
  });
}

function wait(
  request: RequestView,
  template: TemplateView,
  { votes = [], isLimited }: Facts,
  opening: Waiting,
  notReady: Violation | undefined,
  nowMs: number,
): Next {
  const entries = template.spec.accessConfig.approvals?.all ?? [];
  const untilMs = opening.is === 'scheduled' ? opening.atMs : opening.untilMs;
  const blocked = opening.is === 'unready' && notReady ? { ...notReady, untilMs } : undefined;
  // Only `TemplateNotReady` always ends with an event.
  const mustPoll = blocked && blocked.code !== 'TemplateNotReady';
  return {
    do: 'wait',
    approval: approvalOf(opening, votes),
    condition: waitingCondition(opening, notReady, entries, isLimited),
    reasonLink: linkOf(request, template),
    untilMs: mustPoll ? Math.min(untilMs, nowMs + pollMs) : untilMs,
    blocked,
  };
}

function grantOf(
  { name, uid, generation }: TemplateView,
  { kind: { templateKind } }: Facts,
  plan: Plan,
  times: Pick<Grant, 'startsAt' | 'votes' | 'expiresAt'>,
): Grant {
  return {
    template: { kind: templateKind, name, uid, generation },
    subjects: plan.subjects,
    pod: plan.target,
    rules: plan.rules,
    ...(plan.session ? { session: plan.session } : {}),
    planHash: plan.hash,
    ...times,
  };
}

const votesOf = ({ votes }: Due): Pick<Grant, 'votes'> =>
  votes.length > 0 ? { votes: votes.map(({ uid }) => uid) } : {};

/** The access opens at `nowMs` (epoch ms). */
function owedReviewOf(
  { namespace, name, uid, spec }: RequestView,
  template: TemplateView,
  { kind: { templateKind, requestKind } }: Facts,
  nowMs: number,
): OwedReview {
  const within = parseGoDuration(template.spec.accessConfig.emergency?.reviewWithin ?? '');
  return {
    user: spec.requester?.username ?? '',
    userUid: spec.requester?.uid ?? '',
    namespace,
    templateKind,
    template: template.name,
    templateUid: template.uid,
    templateGeneration: template.generation,
    requestKind,
    request: name,
    requestUid: uid,
    reviewBy: formatTime(nowMs + ('ns' in within ? toMilliseconds(within.ns) : 0)),
  };
}

/** Milliseconds until the kubelet ends the planned pod; Infinity for an existing one. */
function podDurationMs({ pod }: Plan): number {
  const seconds = own(pod?.spec, 'activeDeadlineSeconds');
  return typeof seconds === 'number' ? seconds * 1000 : Number.POSITIVE_INFINITY;
}

const textOf = (ms: number): string => durationText(BigInt(ms) * 1_000_000n);

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

/** By `reason.link` of the template, such as the URL of a ticket. */
function linkOf({ spec: { reason } }: RequestView, template: TemplateView): string | undefined {
  const config = template.spec.accessConfig.reason;
  return config && reason !== undefined ? reasonLink(reason, config) : undefined;
}
