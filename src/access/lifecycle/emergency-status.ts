import { approvalCondition } from '../../api/access/names.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { AccessKind } from '../access-kind.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import { maxShownVotes, shownVote } from './approval-status.ts';
import type { ApprovalUpdate } from './request-status.ts';
import type { JudgedVote } from './votes.ts';

/** The access opens at `nowMs` (epoch ms). */
export function reviewOf(
  { namespace, name, uid, spec }: RequestView,
  template: TemplateView,
  { templateKind, requestKind }: Pick<AccessKind, 'templateKind' | 'requestKind'>,
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

export const openedByEmergency = ({ reviewBy }: OwedReview): ApprovalUpdate => ({
  approval: { state: 'ReviewOwed', due: reviewBy },
  condition: {
    type: approvalCondition,
    status: 'True',
    reason: 'Emergency',
    message: `emergency access without approvals; another person must review it by ${reviewBy}, with an AccessVote about Review`,
  },
});

/** `nowMs` is epoch ms. */
export function owedApproval(
  { approval }: Pick<RequestView, 'approval'>,
  owed: OwedReview,
  nowMs: number,
): RequestApproval {
  const isOverdue = (parseTime(owed.reviewBy) ?? 0) <= nowMs;
  return { ...approval, state: isOverdue ? 'ReviewOverdue' : 'ReviewOwed', due: owed.reviewBy };
}

/** Perhaps no vote counts: a user removed the entry, or the voter lost the verb `approve`. */
export function reviewedApproval(
  { approval }: Pick<RequestView, 'approval'>,
  judged: readonly JudgedVote[],
): ApprovalUpdate {
  const votes = judged.slice(-maxShownVotes).map(shownVote);
  const reviewed = { ...approval, state: 'Reviewed', votes } as const;
  return {
    approval: reviewed,
    condition: {
      type: approvalCondition,
      status: 'True',
      reason: 'Emergency',
      message: `emergency access without approvals; ${verdictText(reviewed)}`,
    },
  };
}

/** A clause. A denial prevails over approvals, as in the audit journal. */
function verdictText({ votes = [] }: RequestApproval): string {
  const counted = votes.filter(({ ignored }) => ignored === undefined);
  const vote = counted.find(({ decision }) => decision === 'Deny') ?? counted[0];
  if (!vote) return 'no review of the emergency is owed any more';
  const verdict = vote.decision === 'Deny' ? 'did not find the emergency justified' : 'found the emergency justified';
  return `${vote.voter} ${verdict}${vote.reason === undefined ? '' : `: ${vote.reason}`}`;
}
