import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName, oneOf, time } from '../schema/fields.ts';
import { ageColumn, column } from '../schema/kind.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { maxExtensions, maxReasonLength } from './access-config.ts';
import { ended } from './ended.ts';
import { grant } from './grant.ts';
import { summaryConditions } from './names.ts';

const common = {
  conditions: Type.Optional(conditions),
  ready: Type.Optional(
    Type.Boolean({
      description:
        'Whether all conditions are True, not counting AccessApproved, AccessShortened, PodLimited, Ready, Reconciling, and Stalled.',
    }),
  ),
  accessMessage: Type.Optional(
    Type.String({
      description: 'How to use open access: a command or text.',
      maxLength: 32_768,
    }),
  ),
};

const child = Type.Object({
  kind: oneOf(['Pod', 'Role', 'RoleBinding'], {
    description: 'The kind of the object.',
  }),
  name: objectName('The name of the object.'),
  uid: Type.String({ description: 'The uid of the object.', minLength: 1, maxLength: 128 }),
});

export const templateStatus = Type.Object(
  {
    ...common,
    accessMessage: Type.Optional(
      Type.String({ description: 'Not used. Templates that Oz stored may have it.', maxLength: 32_768 }),
    ),
  },
  { description: 'The observed state of this template.' },
);

const approval = Type.Object(
  {
    state: oneOf(
      [
        'Pending',
        'Scheduled',
        'Claimable',
        'Approved',
        'Denied',
        'TimedOut',
        'ReviewOwed',
        'ReviewOverdue',
        'Reviewed',
      ],
      {
        description:
          'What the request waits for, or how it was decided. Reviewed: a person reviewed emergency access, and votes has the verdict, or a user removed its entry from the ConfigMap drawbridge-emergency-reviews.',
      },
    ),
    due: Type.Optional(
      time(
        'Scheduled: when access starts or can be claimed. Pending, Claimable, Approved: when drawbridge denies the request if it still waits. TimedOut: when it timed out. ReviewOwed, ReviewOverdue, Reviewed: when the review was or is due.',
      ),
    ),
    all: Type.Optional(
      listOf(
        Type.Object({
          name: Type.String({ description: 'As in the template.', maxLength: 63 }),
          have: Type.Integer({ description: 'How many people have approved.', minimum: 0 }),
          need: Type.Integer({ description: 'How many people must approve.', minimum: 1 }),
        }),
        4,
        { description: 'The progress of each entry of approvals.all.' },
      ),
    ),
    votes: Type.Optional(
      listOf(
        Type.Object({
          uid: Type.String({ description: 'The uid of the vote.', maxLength: 128 }),
          voter: Type.String({ description: 'Who voted.', maxLength: 1024 }),
          decision: oneOf(['Approve', 'Deny'], { description: 'Approve or Deny.' }),
          at: time('When the vote was created.'),
          max: Type.Optional(
            Type.String({ description: 'The longest duration that it approves, a Go duration.', maxLength: 64 }),
          ),
          reason: Type.Optional(Type.String({ description: 'Why the voter decided so.', maxLength: maxReasonLength })),
          onBehalfOf: Type.Optional(
            Type.String({ description: 'The person for whom a program claims to vote.', maxLength: 1024 }),
          ),
          ignored: Type.Optional(Type.String({ description: 'Why the vote does not count.', maxLength: 1024 })),
        }),
        50,
        { description: 'The newest votes, for information only. The grant names the votes that approved it.' },
      ),
    ),
  },
  { description: 'The approval of this request.' },
);

const extension = Type.Object({
  by: Type.String({ description: 'How much longer the requester asked for, a Go duration.', maxLength: 64 }),
  state: oneOf(['Pending', 'Granted', 'Denied'], {
    description: 'Pending: it waits for approvals. Denied: for good.',
  }),
  message: Type.Optional(Type.String({ description: 'What it waits for, or why it was refused.', maxLength: 2048 })),
  expiresAt: Type.Optional(time('When access ends with it, if it was granted.')),
  votes: Type.Optional(
    listOf(Type.String({ maxLength: 128 }), 40, { description: 'The uids of the votes that approved it.' }),
  ),
});

export const requestStatus = Type.Object(
  {
    state: Type.Optional(
      oneOf(['Waiting', 'Open', 'Denied', 'Expired', 'Revoked', 'Withdrawn'], {
        description:
          'Waiting: access is not open yet. Open: the objects of the grant exist. Denied, Expired, Revoked: as ended.how. Withdrawn: revoked before it was granted. For information only.',
      }),
    ),
    ...common,
    podName: Type.Optional(objectName('The granted pod.')),
    grant: Type.Optional(grant),
    expiresAt: Type.Optional(time('When access ends or ended, with all extensions. For information only.')),
    approval: Type.Optional(approval),
    reasonLink: Type.Optional(
      Type.String({
        description: 'The address of the ticket in spec.reason, if the template has reason.link.',
        maxLength: 16_384,
      }),
    ),
    extensions: Type.Optional(
      listOf(extension, maxExtensions, {
        description: 'The state of each extension, in the order of spec.extensions.',
      }),
    ),
    children: Type.Optional(
      listOf(child, 8, {
        description: 'The objects that drawbridge created, until it has deleted them.',
      }),
    ),
    ended: Type.Optional(ended),
  },
  { description: 'The observed state of this request.' },
);

export type TemplateStatus = Static<typeof templateStatus>;
export type RequestStatus = Static<typeof requestStatus>;
export type RequestState = NonNullable<RequestStatus['state']>;
/** What the server decided on one extension. */
export type ExtensionStatus = Static<typeof extension>;
/** What a request waits for, and who voted. */
export type RequestApproval = Static<typeof approval>;
/** An object that the server created for a request. */
export type RequestChild = Static<typeof child>;

/** Once set, it stays. At the root, because rules of a removed status are not evaluated. */
export const grantIsFinal: CelRule = {
  rule: '!has(oldSelf.status) || !has(oldSelf.status.grant) || (has(self.status) && has(self.status.grant) && self.status.grant == oldSelf.status.grant)',
  message: 'status.grant is immutable once it is set; create another request',
  reason: 'FieldValueForbidden',
  fieldPath: '.status.grant',
};

const readyColumn = column('Ready', '.status.ready', 'Whether the object is ready to use.', { type: 'boolean' });

const summary = (field: string): string => `.status.conditions[?(@.type=="${summaryConditions.ready}")].${field}`;

const whyColumn = column('Why', summary('message'), 'The reason for the state, and what to do.', { priority: 1 });

export const templateColumns = [
  readyColumn,
  column('State', summary('reason'), 'Ready, or why drawbridge cannot open access through the template.'),
  column('Groups', '.spec.accessConfig.allowedGroups', 'The groups whose members can request access.'),
  column('Duration', '.spec.accessConfig.defaultDuration', 'The duration of a request that names none.'),
  column('Max', '.spec.accessConfig.maxDuration', 'The longest duration.'),
  column('Approvals', '.spec.accessConfig.approvals.all', 'Whose approvals access needs.', { priority: 1 }),
  column('Reason', '.spec.accessConfig.reason', 'What the reason of a request must be.', { priority: 1 }),
  whyColumn,
];

export const requestColumns = [
  column('Template', '.spec.templateName', 'The template of the request.'),
  column('Pod', '.status.podName', 'The granted pod.'),
  readyColumn,
  column('State', '.status.state', 'Waiting, Open, or how it ended.'),
  column('Who', '.spec.requester.username', 'The requester.'),
  // kubectl prints <invalid> for a column of type date with a future time.
  column('Until', '.status.expiresAt', 'When the access ends, RFC 3339.'),
  ageColumn,
  column('Reason', '.spec.reason', 'The reason that the requester gave.', { priority: 1 }),
  whyColumn,
];

/** `status.state`, also of a status that an earlier version wrote without one. */
export function requestStateOf({
  ended,
  grant,
  children = [],
}: {
  readonly ended?: { readonly how: Exclude<RequestState, 'Waiting' | 'Open' | 'Withdrawn'> } | undefined;
  readonly grant?: unknown;
  readonly children?: readonly unknown[];
}): RequestState {
  if (!ended) return children.length > 0 ? 'Open' : 'Waiting';
  return ended.how === 'Revoked' && !grant ? 'Withdrawn' : ended.how;
}
