import type { CodeTable } from '../code-table.ts';

/** Denials of votes. */
export const voteCodes = {
  RequestNotFound: {
    audience: 'requester',
    meaning: 'The namespace of the vote has no such request.',
    remedy: 'Correct `spec.request`.',
  },
  RequestEnded: {
    audience: 'requester',
    meaning: 'The request was denied, revoked, or deleted, or its access has ended.',
    remedy: 'No vote is needed. For new access, the requester creates a new request.',
  },
  TemplateChanged: {
    audience: 'requester',
    meaning: 'The template was changed after the vote, or after its voter read it.',
    remedy: 'Read the template, and vote again.',
  },
  AlreadyVoted: {
    audience: 'requester',
    meaning: 'The user has already created this vote: for the same request, `spec.about`, and `spec.decision`.',
    remedy:
      'The first vote stays. To deny access that you approved, or to end it if it is open, vote with `decision: Deny`.',
  },
  NothingToDecide: {
    audience: 'requester',
    meaning: 'The request does not wait for the decision in `spec.about`.',
    remedy: 'Correct `spec.about`.',
  },
  SelfApproval: {
    audience: 'requester',
    meaning:
      'The voter created the request, under the same name or with the same uid, or the request names no requester.',
    remedy: 'Ask another person to decide.',
  },
  ServiceAccountVote: {
    audience: 'requester',
    meaning: 'A ServiceAccount voted, and the template counts votes of people only.',
    remedy: 'Vote as a person, or ask the author of the template to set `approvals.serviceAccounts`.',
  },
  NotApprover: {
    audience: 'requester',
    meaning: 'The voter does not hold the verb `approve` on the template.',
    remedy: 'Ask an administrator to bind the ClusterRole `drawbridge-approver`.',
  },
  NotInGroups: {
    audience: 'requester',
    meaning: 'The voter approves, and is in none of the groups whose approvals the template requires.',
    remedy: 'Ask a member of one of these groups to approve. To deny, the verb `approve` is enough.',
  },
  VoterForged: {
    audience: 'requester',
    meaning: '`spec.voter` is not the caller.',
    remedy: 'Omit `spec.voter`; the webhook sets it.',
  },
  VoteKept: {
    audience: 'requester',
    meaning: 'Until its request is deleted, a vote cannot be changed or deleted.',
    remedy: 'To withdraw an approval, create a vote that denies. A denial is final.',
  },
} as const satisfies CodeTable;
