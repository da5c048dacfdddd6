import { type Static, Type } from 'typebox';
import type { Resource } from '../object.ts';
import { objectName, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { attestedUser, maxReasonLength } from './access-config.ts';
import { type TemplateKind, templateKinds } from './names.ts';

/** The resource of AccessVotes: one object for each vote, in the namespace of its request. */
export const accessVotes = {
  group: 'access.drawbridge.dev',
  version: 'v1alpha1',
  plural: 'accessvotes',
  kind: 'AccessVote',
  namespaced: true,
} as const satisfies Resource;

/** What a vote is about: the access itself, its n-th extension, counted from 1, or the review of an emergency. */
export const aboutPattern = '^(Access|Review|Extension-([1-9]|10))$';

const voter = Type.Object(
  {
    ...attestedUser,
    time: time('When the vote was created.'),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote these fields for this vote. A vote without it never counts.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'The user who voted. The admission webhook sets it, and overwrites any submitted value.' },
);

/** `spec.voter`: the user who voted, as the webhook recorded them. */
export type Voter = Static<typeof voter>;

const votedTemplate = Type.Object(
  {
    kind: Type.Unsafe<TemplateKind>(
      Type.Union(
        templateKinds.map((kind) => Type.Literal(kind)),
        { description: 'The kind of the template.' },
      ),
    ),
    name: objectName('Its name, in the namespace of this vote.'),
    uid: Type.String({ description: 'Its uid.', minLength: 1, maxLength: 128 }),
    generation: Type.Integer({
      description: 'Its generation. The vote counts for this generation only.',
      minimum: 0,
      format: 'int64',
    }),
  },
  {
    description:
      'The template of the request. The admission webhook sets it. It denies an approval that names another uid or generation than the present ones.',
  },
);

const request = Type.Object(
  {
    kind: Type.Union([Type.Literal('PodAccessRequest'), Type.Literal('ExecAccessRequest')], {
      description: 'The kind of the request.',
    }),
    name: objectName('Its name, in the namespace of this vote.'),
    uid: Type.Optional(
      Type.String({
        description: 'Its uid. The admission webhook sets it; a vote that names another uid is denied.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'The request that the vote is about.' },
);

/** The kind AccessVote: its schema, its rules, and its columns. */
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
          'The decision: Access for the request itself, Extension-1 for its first extension, and so on, or Review for emergency access.',
        pattern: aboutPattern,
        maxLength: 16,
        default: 'Access',
      }),
      decision: Type.Union([Type.Literal('Approve'), Type.Literal('Deny')], {
        description:
          'Approve or Deny. A Deny about Access is final and ends open access; about an extension, it refuses that extension. Either decision settles a review.',
      }),
      max: Type.Optional(
        Type.String({
          description: 'The longest duration that this vote approves, as a Go duration such as 20m.',
          maxLength: 64,
        }),
      ),
      reason: Type.Optional(
        Type.String({
          description: 'Why the voter decides so, for the requester and the audit journal.',
          maxLength: maxReasonLength,
        }),
      ),
      onBehalfOf: Type.Optional(
        Type.String({
          description:
            'The person for whom a program votes. The status and the audit journal show it, but only the voter counts.',
          maxLength: 1024,
        }),
      ),
      voter: Type.Optional(voter),
    },
    {
      description: 'The vote.',
      'x-kubernetes-validations': [
        { rule: 'self == oldSelf', message: 'a vote is immutable; create another', reason: 'FieldValueForbidden' },
      ],
    },
  ),
  status: Type.Object({}, { description: 'Votes have no status.' }),
  printerColumns: [
    column('Request', '.spec.request.name', 'The request.'),
    column('About', '.spec.about', 'What the vote is about.'),
    column('Decision', '.spec.decision', 'Approve or Deny.'),
    column('Voter', '.spec.voter.username', 'Who voted.'),
    column('Max', '.spec.max', 'The longest duration that the vote approves.', { priority: 1 }),
    column('Reason', '.spec.reason', 'Why.', { priority: 1 }),
    ageColumn,
  ],
});

/** The value that the webhook signs: the voter, the vote, and its time. */
export interface VoteAttestation {
  readonly namespace: string;
  readonly name: string;
  /** The whole spec; the signature does not cover its field `voter`. */
  readonly spec: object;
  readonly voter: Pick<Voter, 'username' | 'uid' | 'groups' | 'time'>;
}

/** The spec of an AccessVote. */
export type VoteSpec = ObjectOf<typeof accessVoteKind>['spec'];
