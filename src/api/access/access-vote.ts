import { Type } from 'typebox';
import type { Resource } from '../object.ts';
import { objectName, oneOf, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { attestedUser, maxReasonLength } from './access-config.ts';
import { accessCategory, templateKinds } from './names.ts';

/** One object for each vote, in the namespace of its request. */
export const accessVotes = {
  group: 'access.drawbridge.dev',
  version: 'v1alpha1',
  plural: 'accessvotes',
  kind: 'AccessVote',
  namespaced: true,
} as const satisfies Resource;

/** What a vote decides: the access, its N-th extension (from 1), or the review of an emergency. */
export const aboutPattern = '^(Access|Review|Extension-([1-9]|10))$';

const voter = Type.Object(
  {
    ...attestedUser,
    time: time('When the webhook set these fields.'),
  },
  {
    description:
      'Who voted. The admission webhook sets it, over any submitted value, and an admission policy denies another user.',
  },
);

const votedTemplate = Type.Object(
  {
    kind: oneOf(templateKinds, { description: 'The kind of the template.' }),
    name: objectName('The name of the template.'),
    uid: Type.String({ description: 'The uid of the template.', minLength: 1, maxLength: 128 }),
    generation: Type.Integer({
      description: 'The generation of the template.',
      minimum: 0,
      format: 'int64',
    }),
  },
  {
    description:
      'The template that the voter decided on. The admission webhook sets it, but keeps the uid and generation of an approval of access or of an extension. The approval counts for these only, and is denied if they are not current.',
  },
);

const request = Type.Object(
  {
    kind: oneOf(['PodAccessRequest', 'ExecAccessRequest'], {
      description: 'The kind of the request.',
    }),
    name: objectName('In the namespace of this vote.'),
    uid: Type.Optional(
      Type.String({
        description: 'If unset, the admission webhook sets it. It denies a vote that names another uid.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'The request that the vote is about.' },
);

export const accessVoteKind = defineKind({
  resource: accessVotes,
  description:
    'An AccessVote approves or denies a request or an extension, or reviews emergency access. It is immutable. Voters need the verb approve on the template of the request.',
  spec: Type.Object(
    {
      request,
      template: Type.Optional(votedTemplate),
      about: Type.String({
        description:
          'Access for the request itself, Extension-1 for its first extension, and so on, or Review for emergency access.',
        pattern: aboutPattern,
        maxLength: 16,
        default: 'Access',
      }),
      decision: oneOf(['Approve', 'Deny'], {
        description:
          'A Deny about Access is final and ends open access; about an extension, it refuses that. Either settles a review; a Deny also ends emergency access that is open.',
      }),
      max: Type.Optional(
        Type.String({
          description:
            'The longest duration that this vote approves, a Go duration such as 20m. If unset, it sets no limit.',
          maxLength: 64,
        }),
      ),
      reason: Type.Optional(
        Type.String({
          description: 'For the requester and the audit journal.',
          maxLength: maxReasonLength,
        }),
      ),
      onBehalfOf: Type.Optional(
        Type.String({
          description:
            'The person for whom a program votes. The status and the audit journal show it; only the voter counts.',
          maxLength: 1024,
        }),
      ),
      voter: Type.Optional(voter),
    },
    {
      description: 'The vote.',
      'x-kubernetes-validations': [
        {
          rule: 'self == oldSelf',
          message: 'a vote is immutable; to undo an approval, create a vote that denies',
          reason: 'FieldValueForbidden',
        },
      ],
    },
  ),
  status: Type.Object({}, { description: 'Votes have no status.' }),
  shortNames: ['av'],
  categories: [accessCategory],
  printerColumns: [
    column('Request', '.spec.request.name', 'The request.'),
    column('About', '.spec.about', 'What the vote is about.'),
    column('Decision', '.spec.decision', 'Approve or Deny.'),
    column('Voter', '.spec.voter.username', 'Who voted.'),
    column('Max', '.spec.max', 'The longest duration that the vote approves.', { priority: 1 }),
    column('Reason', '.spec.reason', 'The reason for the decision.', { priority: 1 }),
    ageColumn,
  ],
});

export type VoteSpec = ObjectOf<typeof accessVoteKind>['spec'];
