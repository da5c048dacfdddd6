import { type Static, Type } from 'typebox';
import { own } from '../../kit/json-value.ts';
import { listOf, objectName, oneOf, time } from '../schema/fields.ts';
import { type Read, readBySchema } from '../schema/read.ts';
import { toStructural } from '../schema/structural-schema.ts';
import { templateKinds } from './names.ts';

const nonEmptyList = (maxItems: number, description: string) =>
  listOf(Type.String({ maxLength: 128 }), maxItems, { description, minItems: 1 });

const rule = {
  apiGroups: nonEmptyList(2, 'The core group, the empty string, has pods.'),
  resources: nonEmptyList(4, 'pods, or a subresource of it such as pods/log.'),
  verbs: nonEmptyList(8, 'Such as get or create.'),
};

/** In templates. The server confines it to the granted pod. */
export const templateRule = Type.Object(rule, { description: 'Permissions on the pod, as in a rule of a Role.' });

/** A rule of the Role or, with `session`, what the gateway forwards. */
const grantedRule = Type.Object(
  {
    ...rule,
    resourceNames: Type.Unsafe<[string, ...string[]]>(
      listOf(Type.String({ maxLength: 253 }), 1, { description: 'The pod.', minItems: 1 }),
    ),
  },
  { description: 'Permissions on the pod, as in a rule of a Role.' },
);

/** Without the name of a pod. */
export type TemplateRule = Static<typeof templateRule>;
/** For the granted pod only. */
export type GrantedRule = Static<typeof grantedRule>;

const uid = (description: string) => Type.String({ description, minLength: 1, maxLength: 128 });

/** Written once, before any object. A later edit of the template only shortens or ends access. */
export const grant = Type.Object(
  {
    template: Type.Object(
      {
        kind: oneOf(templateKinds, { description: 'The kind of the template.' }),
        name: objectName('The name of the template.'),
        uid: uid('The uid of the template.'),
        generation: Type.Integer({
          description: 'The generation of the template.',
          minimum: 0,
          format: 'int64',
        }),
      },
      { description: 'The template when access was granted; later changes do not widen the grant.' },
    ),
    subjects: listOf(
      Type.Object({
        kind: oneOf(['User', 'Group'], {
          description: 'A user, or a group of users.',
        }),
        name: Type.String({ description: 'The name of the user or group.', minLength: 1, maxLength: 1024 }),
      }),
      256,
      { description: 'The users and groups that get access.', minItems: 1 },
    ),
    pod: Type.Object(
      {
        name: objectName('The name of the pod.'),
        uid: Type.Optional(uid('The uid of the pod, if it existed before the grant.')),
      },
      { description: 'The one pod that the grant opens.' },
    ),
    rules: listOf(grantedRule, 16, { description: 'What the users may do on the pod.' }),
    // Absent in grants whose users call the API server directly.
    session: Type.Optional(
      Type.Object(
        {
          via: oneOf(['Gateway'], {
            description: 'Gateway: users reach the pod only through the gateway.',
          }),
          idleAfter: Type.Optional(
            Type.String({
              description: 'How long a session may pass no data before the gateway ends it. A Go duration.',
              maxLength: 64,
            }),
          ),
          record: Type.Optional(
            oneOf(['BestEffort', 'Required'], {
              description: 'Whether the gateway records sessions. If unset, it does not.',
            }),
          ),
          recordInput: Type.Optional(Type.Boolean({ description: 'Whether recordings include what users type.' })),
        },
        { description: 'How users reach the pod. If unset, they call the API server directly.' },
      ),
    ),
    planHash: Type.String({ description: 'The SHA-256 of the planned objects.', minLength: 1, maxLength: 128 }),
    startsAt: Type.Optional(
      time(
        'When the duration began: when drawbridge granted access after a wait, or emergency access. If unset, at the creation of the request.',
      ),
    ),
    votes: Type.Optional(
      listOf(uid('The uid of an AccessVote.'), 40, { description: 'The votes that approved this grant.' }),
    ),
    expiresAt: time('When access ends.'),
  },
  { description: 'The granted access, written once. It ends at expiresAt, unless it is extended.' },
);

export type Grant = Static<typeof grant>;
export type GrantSession = NonNullable<Grant['session']>;
/** A user or group that gets the access. */
export type GrantSubject = Grant['subjects'][number];

const structural = toStructural(grant, 'grant');

/** Only the grant, so that a request with other invalid fields ends on time. Never throws. */
export function readGrant(request: unknown): Read<Grant> {
  return readBySchema(structural, own(own(request, 'status'), 'grant'), 'status.grant');
}
