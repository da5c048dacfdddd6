import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';

/** Who asked, as the API server authenticated them when the request was created. */
const requester = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the request was created.'),
    nonce: Type.Optional(Type.String({ description: 'Makes the stamp good for one request.', maxLength: 64 })),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote all of this, for this request: without it nothing is granted.',
        maxLength: 128,
      }),
    ),
  },
  { description: 'Who asked. Set by the admission webhook, whatever was sent.' },
);

export type Requester = Static<typeof requester>;

/** What the webhook vouches for: who asked, when, and for what. */
export interface RequesterAttestation {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** The whole spec; the requester and `revoked` in it do not count. */
  readonly spec: object;
  readonly requester: Pick<Requester, 'username' | 'uid' | 'groups' | 'time'>;
}

export type RequesterSignature = Required<Pick<Requester, 'nonce' | 'signature'>>;

/** The fields that requests of every kind have. */
export const requestSpec = {
  templateName: objectName('The name of the template to ask for access through, in the same namespace.'),
  // Loose on purpose: the webhook refuses bad durations with a code and a hint.
  duration: Type.Optional(
    Type.String({
      description:
        'How long access is needed, as a Go duration such as 30m or 1h30m. Without it the template’s defaultDuration; never longer than its maxDuration.',
      maxLength: 64,
    }),
  ),
  requester: Type.Optional(requester),
  revoked: Type.Optional(
    Type.Boolean({
      description:
        'Set it to true to give the access back at once; the request is deleted then. The one field that may change, and only in this direction.',
    }),
  ),
};

/**
 * Rules over the whole spec, so that adding or taking away an optional field counts as a change too. The API server asks them before
 * the validating webhooks, so they say the code that those would. `fields` are all fields of the spec.
 */
export function specIsFinal(fields: Readonly<Record<string, unknown>>): CelRule[] {
  const kept = Object.keys(fields).filter((field) => field !== 'revoked');
  return [
    {
      rule: kept.map(isKept).join(' && '),
      message: 'SpecImmutable: a request cannot be changed once it is made: delete it and make another',
      reason: 'FieldValueForbidden',
    },
    {
      rule: '!has(oldSelf.revoked) || !oldSelf.revoked || (has(self.revoked) && self.revoked)',
      message: 'SpecImmutable: access that was given back stays closed: make another request',
      reason: 'FieldValueForbidden',
      fieldPath: '.revoked',
    },
  ];
}

const isKept = (field: string): string =>
  `(has(self.${field}) ? has(oldSelf.${field}) && self.${field} == oldSelf.${field} : !has(oldSelf.${field}))`;
