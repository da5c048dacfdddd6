import type { CodeTable } from '../code-table.ts';

/** Denials of votes. */
export const voteCodes = {
  RequestNotFound: {
    audience: 'voter',
    meaning: 'The namespace has no such request.',
    remedy: 'Correct `spec.request`.',
  },
  NothingToDecide: {
    audience: 'voter',
    meaning: 'The request has ended, or does not wait for the decision in `spec.about`.',
    remedy:
      'Set `spec.about` to a decision that the message names. To deny the request or end its access, vote `Deny` without `spec.about`.',
  },
  TemplateChanged: {
    audience: 'voter',
    meaning: 'The template changed after the vote, or after its voter read it.',
    remedy: 'Read the template, and vote again.',
  },
  AlreadyVoted: {
    audience: 'voter',
    meaning: 'The user has already created this vote; an approval, for the same version of the template.',
    remedy:
      'The first vote stays. To vote on an extension, set `spec.about` to it. To deny or end access that you approved, vote `Deny`.',
  },
  SelfApproval: {
    audience: 'voter',
    meaning: 'The voter is the requester, or the request names no requester.',
    remedy: 'Ask another person to decide. If the request names no requester, create a new one.',
  },
  NotApprover: {
    audience: 'voter',
    meaning:
      'The vote would not count: the voter lacks the verb `approve`, is in no group of the template, or is a ServiceAccount.',
    remedy: 'Ask a person who may approve, or an administrator to bind the ClusterRole `drawbridge-approver`.',
  },
  VoteKept: {
    audience: 'voter',
    meaning: 'A vote cannot be changed, and not be deleted before its request.',
    remedy: 'To undo an approval, vote `Deny`, which is final.',
  },
} as const satisfies CodeTable;
