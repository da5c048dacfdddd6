import type { Grant } from '../../api/access/grant.ts';
import type { RequestedExtension } from '../../api/access/request-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { subjectsOf } from '../../rbac/roles.ts';
import { templateState } from '../admission-reads.ts';
import { decidingGroupsOf } from '../policy/emergency-policy.ts';
import { chooseExtension, type Extendable } from '../policy/extension-choice.ts';
import { isEligibleByGroup } from '../policy/request-policy.ts';
import { countVotes, votesNeeded } from '../policy/vote-count.ts';
import type { RequestView } from '../stores/access-views.ts';
import { awaitedApprovals, deniedBy, owedApproval, reviewedApproval } from './approval-status.ts';
import { decide } from './decide.ts';
import { type Extension, type Facts, type Look, look, type Next } from './facts.ts';
import { editedTemplate, latestEndMs, requestEndMs } from './request-ends.ts';
import { type Cause, isFinal } from './status.ts';
import { approvalsOf, denialIn } from './votes.ts';
/**
 * Why a request is in its state has this one place. The first that applies:
 *   ended                                          → keep it for a time, then remove it
 *   expired, revoked, deleted, lost, or denied     → end it
 *   an emergency whose review changed              → show that
 *   denied or ended, without `status.ended`        → leave it closed
 *   granted                                        → open it, extend it
 *   otherwise                                      → deny it, let it wait, or grant it
 */
export function next(request: RequestView, facts: Facts, nowMs: number): Next {
  if (request.ended) return afterEnd(request, facts, nowMs);
  const first = endOf(request, facts) ?? reviewOf(request, facts, nowMs);
  if (first) return first;
  // Fails closed; its deadline ends it.
  if (isFinal(request)) return { do: 'rest', untilMs: undefined };
  return request.grant ? afterGrant(request, facts, nowMs) : decide(request, facts, nowMs);
}

/** People can read how it ended, until `status.ended.keptUntil` and its review, or a maximum. */
function afterEnd(request: RequestView, facts: Facts, nowMs: number): Next {
  const review = reviewOf(request, facts, nowMs);
  if (facts.owed && !request.deleting) return review ?? { do: 'rest', untilMs: overdueAtMs(facts, nowMs) };
  if (request.deleting || facts.isRemoved) return { do: 'remove', now: true };
  const untilMs = parseTime(request.ended?.keptUntil ?? '') ?? 0;
  if (facts.endClockMs >= untilMs) return { do: 'remove', now: false };
  if (!facts.surplus) return look('surplus');
  if (facts.surplus.some(({ uid }) => uid === request.uid)) return { do: 'remove', now: false };
  return review ?? { do: 'keep', untilMs };
}

function overdueAtMs({ owed }: Facts, nowMs: number): number | undefined {
  const reviewByMs = parseTime(owed?.reviewBy ?? '') ?? 0;
  return nowMs < reviewByMs ? reviewByMs : undefined;
}

function endOf(request: RequestView, facts: Facts): Next | undefined {
  const { cause, template, endClockMs, lost, denial } = facts;
  const end = (ending: Cause['ending']): Next => ({ do: 'end', cause: { ending } });
  if (cause) return { do: 'end', cause };
  if (endClockMs >= requestEndMs(request, template)) return end('Expired');
  if (request.revoked) return end('Revoked');
  if (request.deleting) return end('Deleted');
  if (!request.grant) return undefined;
  if (endClockMs >= latestEndMs(request, template)) return end('Shortened');
  if (lost === undefined) return look('lost');
  if (lost) return { do: 'end', cause: lost };
  const isAllowed = isStillAllowed(request, request.grant, facts);
  if (isAllowed === undefined) return look('held');
  if (!isAllowed) return end('NoLongerAllowed');
  if (template && denial === undefined) return look('denial');
  return denial ? { do: 'end', cause: { ending: 'VoteDenied', denial } } : undefined;
}

/** By a later edit of the template. Undefined: `held` decides. */
function isStillAllowed(request: RequestView, { subjects }: Grant, { template, held }: Facts): boolean | undefined {
  const edited = editedTemplate(request, template);
  const { requester, emergency } = request.spec;
  if (!edited || !requester) return true;
  const { accessConfig } = edited.spec;
  const allowed = subjectsOf(accessConfig, requester);
  const isGroupAllowed = (group: string): boolean =>
    allowed.some(({ kind, name }) => kind === 'Group' && name === group);
  if (subjects.some(({ kind, name }) => kind === 'Group' && !isGroupAllowed(name))) return false;
  if (isEligibleByGroup(requester, decidingGroupsOf(request.spec, accessConfig))) return true;
  return emergency ? false : held;
}

function reviewOf(request: RequestView, { owed, reviewVotes }: Facts, nowMs: number): Next | undefined {
  if (!request.spec.emergency || !request.grant || request.deleting) return undefined;
  if (owed) {
    const approval = owedApproval(request, owed, nowMs);
    return approval.state === request.approval?.state ? undefined : { do: 'review', approval };
  }
  if (request.approval?.state === 'Reviewed') return undefined;
  return reviewVotes ? { do: 'review', ...reviewedApproval(request, reviewVotes) } : look('reviewVotes');
}

function afterGrant(request: RequestView, facts: Facts, nowMs: number): Next {
  if (!facts.opened) return { do: 'open' };
  const { access, opened, proof } = facts;
  const times = [opened.recheckMs, overdueAtMs(facts, nowMs)].filter((timeMs) => timeMs !== undefined);
  const untilMs = times.length > 0 ? Math.min(...times) : undefined;
  const asked = access && request.spec.extensions?.[access.decided];
  // Without children, access is not open yet.
  if (!asked || request.children.length === 0) return { do: 'rest', untilMs };
  if (proof === 'gap') return { do: 'retry' };
  const to = extensionOf(request, facts, asked, access);
  return 'do' in to ? to : { do: 'extend', asked, access, to, untilMs };
}

function extensionOf(
  request: RequestView,
  { template, votes }: Facts,
  asked: RequestedExtension,
  access: Extendable,
): Extension | Look {
  const state = template && templateState(template);
  if (!template || !state?.ready || state.observedGeneration !== state.generation)
    return { state: 'Pending', message: `waiting until template ${request.spec.templateName} is ready` };
  const { extension, approvals } = template.spec.accessConfig;
  const chosen = chooseExtension(asked, extension, access);
  if ('code' in chosen) return { state: 'Denied', violation: chosen };
  if (!approvals || extension?.approvals === 'None') return { state: 'Granted', endMs: chosen.endMs, votes: [] };
  if (!votes)
    return { do: 'look', at: 'votes', about: `Extension-${access.decided + 1}`, needed: votesNeeded(approvals.all) };
  const denial = denialIn(votes);
  if (denial) return { state: 'Denied', violation: deniedBy(denial, 'extension') };
  const { progress, met } = countVotes(approvals.all, approvalsOf(votes));
  if (!met) return { state: 'Pending', message: awaitedApprovals(progress, approvals.all, access.endMs) };
  const maxMs = Math.min(...met.votes.map((vote) => vote.maxMs ?? Number.POSITIVE_INFINITY));
  const approved = chooseExtension(asked, extension, access, maxMs);
  if ('code' in approved) return { state: 'Denied', violation: approved };
  const uids = new Set(met.votes.map(({ uid }) => uid));
  return { state: 'Granted', endMs: approved.endMs, votes: votes.filter(({ vote }) => uids.has(vote.uid)) };
}
