import { approvalCondition } from '../../api/access/names.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { AccessKind } from '../access-kind.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { ApprovalUpdate } from './request-status.ts';

/** The review that is owed for emergency access that opens at `nowMs` (epoch ms). */
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

/** The status of emergency access when it opens. */
export const openedByEmergency = ({ reviewBy }: OwedReview): ApprovalUpdate => ({
  approval: { state: 'ReviewOwed', until: reviewBy },
  condition: {
    type: approvalCondition,
    status: 'True',
    reason: 'Emergency',
    message: `emergency access without approvals; another person must review it by ${reviewBy}, with an AccessVote about Review`,
  },
});

/**
 * `status.approval` of emergency access. `owed` is its review; undefined if the ConfigMap has none, after the review or because a user
 * removed it. `nowMs` is epoch ms.
 */
export function reviewApproval(
  { approval }: Pick<RequestView, 'approval'>,
  owed: OwedReview | undefined,
  nowMs: number,
): RequestApproval {
  if (!owed) return { ...approval, state: 'Reviewed' };
  const isOverdue = (parseTime(owed.reviewBy) ?? 0) <= nowMs;
  return { ...approval, state: isOverdue ? 'ReviewOverdue' : 'ReviewOwed', until: owed.reviewBy };
}
