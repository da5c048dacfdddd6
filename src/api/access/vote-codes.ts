import type { CodeTable } from '../code-table.ts';

/** Denials of votes. */
export const voteCodes = {
  RequestNotFound: {
    audience: 'voter',
    meaning: 'The namespace of the vote has no such request.',
    remedy: 'Correct `spec.request`.',
  },
  RequestEnded: {
    audience: 'voter',
    meaning: 'The request was denied, revoked, or deleted, or its access has ended.',
    remedy: 'No vote is needed. For new access, the requester creates a new request.',
  },
  TemplateChanged: {
    audience: 'voter',
    meaning: 'The template was changed after the vote, or after its voter read it.',
    remedy: 'Read the template, and vote again.',
  },
  AlreadyVoted: {
    audience: 'voter',
    meaning:
      'The user has already created this vote: for the same request, `spec.about`, and `spec.decision` and, for an approval of access or of an extension, the same version of the template.',
    remedy:
      'The first vote stays. To vote on an extension, set `spec.about` to it, for example `Extension-1`. To deny access that you approved, or to end it if it is open, vote with `decision: Deny`.',
  },
  NothingToDecide: {
    audience: 'voter',
    meaning: 'The request does not wait for the decision in `spec.about`.',
    remedy:
      'Set `spec.about` to a decision that the message names. If it names none, no vote is needed; to deny the request or end its access, vote with `decision: Deny` and omit `spec.about`.',
  },
  SelfApproval: {
    audience: 'voter',
    meaning:
      'The voter created the request, under the same name or with the same uid, or the request names no requester.',
    remedy:
      'Ask another person to decide. If the request names no requester, no vote can count: ask the requester to create a new request, and an administrator to check that the mutating webhook is installed.',
  },
  ServiceAccountVote: {
    audience: 'voter',
    meaning: 'A ServiceAccount voted, and the template counts votes of people only.',
    remedy: 'Vote as a person, or ask the author of the template to set `spec.accessConfig.approvals.serviceAccounts`.',
  },
  NotApprover: {
    audience: 'voter',
    meaning: 'The voter does not hold the verb `approve` on the template.',
    remedy: 'Ask an administrator to bind the ClusterRole `drawbridge-approver`.',
  },
  NotInGroups: {
    audience: 'voter',
    meaning: 'The voter approves, and is in none of the groups whose approvals the template requires.',
    remedy: 'Ask a member of one of these groups to approve. To deny, the verb `approve` is enough.',
  },
  VoterForged: {
    audience: 'voter',
    meaning: '`spec.voter` is not the caller.',
    remedy: 'Omit `spec.voter`; the webhook sets it.',
  },
  VoteKept: {
    audience: 'voter',
    meaning: 'Until its request is deleted, a vote cannot be changed or deleted.',
    remedy: 'To withdraw an approval, create a vote that denies. A denial is final.',
  },
} as const satisfies CodeTable;
