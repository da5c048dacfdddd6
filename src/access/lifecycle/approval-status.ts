import type { ApprovalEntry } from '../../api/access/access-config.ts';
import { approvalCondition, type RequestCondition } from '../../api/access/names.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { type AccessConditionUpdate, success } from '../conditions.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import { listNames } from '../policy/names.ts';
import type { Opening } from '../policy/opening.ts';
import type { Violation } from '../policy/policy.ts';
import type { EntryCount } from '../policy/vote-count.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { JudgedVote } from './votes.ts';

export type Update = AccessConditionUpdate<RequestCondition>;

export interface ApprovalUpdate {
  readonly approval: RequestApproval;
  readonly condition: Update;
}

/** The newest votes stay in the status. */
const maxShownVotes = 50;

const states = {
  pending: 'Pending',
  scheduled: 'Scheduled',
  claimable: 'Claimable',
  timedOut: 'TimedOut',
  due: 'Approved',
  unready: 'Approved',
} as const satisfies Readonly<Record<(Opening | Waiting)['is'], RequestApproval['state']>>;

/** `judged`: all votes about the access, oldest first. `state` replaces that of `opening`. */
export function approvalOf(
  opening: Opening | Waiting,
  judged: readonly JudgedVote[],
  state: RequestApproval['state'] = states[opening.is],
): RequestApproval {
  const deadlineMs = 'untilMs' in opening ? opening.untilMs : 'atMs' in opening ? opening.atMs : undefined;
  // A denied request waits for nothing, although `opening` may still have a deadline.
  const untilMs = state === 'Denied' ? undefined : deadlineMs;
  return {
    state,
    ...(untilMs === undefined ? {} : { due: formatTime(untilMs) }),
    ...('progress' in opening && opening.progress.length > 0 ? { all: [...opening.progress] } : {}),
    ...(judged.length > 0 ? { votes: shownVotes(judged) } : {}),
  };
}

const shownVotes = (judged: readonly JudgedVote[]) => judged.slice(-maxShownVotes).map(shownVote);

function shownVote({ vote, violation }: JudgedVote): NonNullable<RequestApproval['votes']>[number] {
  const { voter, decision, max, reason, onBehalfOf } = vote.spec;
  return {
    uid: vote.uid,
    voter: voter?.username ?? '',
    decision,
    at: formatTime(vote.createdAtMs),
    ...(max === undefined ? {} : { max }),
    ...(reason === undefined ? {} : { reason }),
    ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
    ...(violation === undefined ? {} : { ignored: `${violation.code}: ${violation.message}`.slice(0, 1024) }),
  };
}

export type Due = Extract<Opening, { is: 'due' }>;
export type Waiting =
  | Extract<Opening, { is: 'pending' | 'scheduled' | 'claimable' }>
  /** Approved, but a grant is not possible yet. Denied at `untilMs` (epoch ms). */
  | { readonly is: 'unready'; readonly progress: readonly EntryCount[]; readonly untilMs: number };

/** Unknown, because False would be final. `isLimited`: a limit on open grants applies. */
export function waitingCondition(
  opening: Waiting,
  notReady: Violation | undefined,
  entries: readonly ApprovalEntry[],
  isLimited: boolean,
): Update {
  const reason = opening.is === 'unready' && notReady ? notReady.code : states[opening.is];
  const message = [waitingMessage(opening, entries, isLimited), ...(notReady ? [notReady.message] : [])].join('; ');
  return { type: approvalCondition, status: 'Unknown', reason, message };
}

/** For example `waiting for approvals until 2026-11-21T09:30:00Z: peer 0 of 1 from [devs, sre]`. */
export function awaitedApprovals(
  progress: readonly EntryCount[],
  entries: readonly ApprovalEntry[],
  untilMs: number,
): string {
  const shown = progress.map(({ name, have, need }) => {
    if (have >= need) return `${name} ${have} of ${need}`;
    const groups = entries.find((entry) => entry.name === name)?.groups;
    return `${name} ${have} of ${need} from ${groups ? listNames(groups) : 'holders of the verb approve'}`;
  });
  return `waiting for approvals until ${formatTime(untilMs)}: ${shown.join(', ')}`;
}

function waitingMessage(opening: Waiting, entries: readonly ApprovalEntry[], isLimited: boolean): string {
  switch (opening.is) {
    case 'pending':
      return awaitedApprovals(opening.progress, entries, opening.untilMs);
    case 'scheduled':
      return opening.claimUntilMs === undefined
        ? `access starts at ${formatTime(opening.atMs)}${isLimited ? ', if the limits on open grants allow it then; otherwise the request is denied' : ''}`
        : `the requester can claim the access (spec.claimed: true, or drawbridge claim) from ${formatTime(opening.atMs)} until ${formatTime(opening.claimUntilMs)}; it does not start before that claim`;
    case 'claimable':
      return `waiting until ${formatTime(opening.untilMs)} for the requester to claim the access (spec.claimed: true, or drawbridge claim); it does not start before that`;
    case 'unready':
      return `waiting until ${formatTime(opening.untilMs)}, because access cannot open yet`;
  }
}

/** For a grant whose duration counts from its opening, except for an emergency. */
export function approvedBy(opening: Due, judged: readonly JudgedVote[]): ApprovalUpdate {
  const uids = new Set(opening.votes.map(({ uid }) => uid));
  const voters = judged.filter(({ vote }) => uids.has(vote.uid)).map(({ vote }) => vote.spec.voter?.username ?? '');
  const message =
    voters.length > 0
      ? `approved by ${voters.join(', ')}`
      : 'the template requires no approvals, and access may start now';
  return { approval: approvalOf(opening, judged), condition: success(approvalCondition, message) };
}

export function timedOut({ missing, atMs }: Extract<Opening, { is: 'timedOut' }>): Violation {
  const by = formatTime(atMs);
  return missing === 'approvals'
    ? {
        code: 'NotApproved',
        message: `the approvals that the template requires did not come by ${by}; create a new request`,
        status: 403,
      }
    : {
        code: 'NotClaimed',
        message: `the request was approved, but the requester did not claim the access by ${by}; create a new request`,
        status: 403,
      };
}

export function deniedBy({ vote }: Pick<JudgedVote, 'vote'>, what: 'request' | 'extension' = 'request'): Violation {
  const { voter, about, reason } = vote.spec;
  const why = reason === undefined ? '' : `: ${reason}`;
  const verdict = about === 'Review' ? 'did not find the emergency justified' : `denied the ${what}`;
  return { code: 'VoteDenied', message: `${voter?.username ?? 'an approver'} ${verdict}${why}`, status: 403 };
}

const openedByEmergency = (message: string): Update => ({
  type: approvalCondition,
  status: 'True',
  reason: 'Emergency',
  message: `emergency access without approvals; ${message}`,
});

export const emergencyApproval = ({ reviewBy }: OwedReview): ApprovalUpdate => ({
  approval: { state: 'ReviewOwed', due: reviewBy },
  condition: openedByEmergency(`another person must review it by ${reviewBy}, with an AccessVote about Review`),
});

/** `nowMs` is epoch ms. */
export function owedApproval({ approval }: RequestView, owed: OwedReview, nowMs: number): RequestApproval {
  const isOverdue = (parseTime(owed.reviewBy) ?? 0) <= nowMs;
  return { ...approval, state: isOverdue ? 'ReviewOverdue' : 'ReviewOwed', due: owed.reviewBy };
}

/** Perhaps no vote counts: a user removed the entry, or the voter lost the verb `approve`. */
export function reviewedApproval({ approval }: RequestView, judged: readonly JudgedVote[]): ApprovalUpdate {
  const reviewed = { ...approval, state: 'Reviewed', votes: shownVotes(judged) } as const;
  return { approval: reviewed, condition: openedByEmergency(verdictText(reviewed)) };
}

/** A clause. A denial prevails over approvals, as in the audit journal. */
function verdictText({ votes = [] }: RequestApproval): string {
  const counted = votes.filter(({ ignored }) => ignored === undefined);
  const vote = counted.find(({ decision }) => decision === 'Deny') ?? counted[0];
  if (!vote) return 'no review of the emergency is owed any more';
  const verdict = vote.decision === 'Deny' ? 'did not find the emergency justified' : 'found the emergency justified';
  return `${vote.voter} ${verdict}${vote.reason === undefined ? '' : `: ${vote.reason}`}`;
}
