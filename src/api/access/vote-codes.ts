import type { CodeTable } from '../code-table.ts';

/** Denials of votes. */
export const voteCodes = {
  RequestNotFound: {
    audience: 'voter',
    meaning: 'The namespace of the vote has no such request.',
    remedy: 'Correct `spec.request`.',
  },
  NothingToDecide: {
    audience: 'voter',
    meaning: 'The request has ended, or does not wait for the decision in `spec.about`.',
    remedy:
      'Set `spec.about` to a decision that the message names. To deny the request or end its access, vote with `decision: Deny` and omit `spec.about`.',
  },
  TemplateChanged: {
    audience: 'voter',
    meaning: 'The template was changed after the vote, or after its voter read it.',
    remedy: 'Read the template, and vote again.',
  },
  AlreadyVoted: {
    audience: 'voter',
    meaning: 'The user has already created this vote, for an approval also for the same version of the template.',
    remedy:
      'The first vote stays. To vote on an extension, set `spec.about` to it. To deny or end access that you approved, vote with `decision: Deny`.',
  },
  SelfApproval: {
    audience: 'voter',
    meaning: 'The voter is the requester, or the request names no requester.',
    remedy: 'Ask another person to decide. If the request names no requester, create a new one.',
  },
  NotApprover: {
    audience: 'voter',
    meaning:
      'The vote would not count: the voter does not hold the verb `approve`, is in none of the groups of the template, or is a ServiceAccount.',
    remedy: 'Ask a person who may approve, or ask an administrator to bind the ClusterRole `drawbridge-approver`.',
  },
  VoteKept: {
    audience: 'voter',
    meaning: 'Until its request is deleted, a vote cannot be changed or deleted.',
    remedy: 'To withdraw an approval, create a vote that denies. A denial is final.',
  },
} as const satisfies CodeTable;
