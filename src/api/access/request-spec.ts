import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';

/** The creator of the request, as the API server authenticated them. */
const requester = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({
      description: 'The user’s uid, if the authenticator provides one.',
      default: '',
      maxLength: 1024,
    }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the webhook set these fields, at the creation of the request.'),
    nonce: Type.Optional(
      Type.String({ description: 'A random value that makes the signature unique.', maxLength: 64 }),
    ),
    signature: Type.Optional(
      Type.String({
        description:
          'Proves that the webhook wrote these fields for this request. The server denies a request without it.',
        maxLength: 128,
      }),
    ),
  },
  {
    description: 'The user who created the request. The admission webhook sets it, and overwrites any submitted value.',
  },
);

export type Requester = Static<typeof requester>;

/** The value that the webhook signs: who created the request, when, and for what. */
export interface RequesterAttestation {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** The whole spec; the signature does not cover its fields `requester` and `revoked`. */
  readonly spec: object;
  readonly requester: Pick<Requester, 'username' | 'uid' | 'groups' | 'time'>;
}

export type RequesterSignature = Required<Pick<Requester, 'nonce' | 'signature'>>;

/** The fields of requests of every kind. */
export const requestSpec = {
  templateName: objectName('The name of the template, in the same namespace.'),
  // No pattern here, because the webhook denies invalid durations with a code and a remedy.
  duration: Type.Optional(
    Type.String({
      description:
        'The requested duration, as a Go duration such as 30m or 1h30m. Default: the template’s defaultDuration. The server caps it at the template’s maxDuration.',
      maxLength: 64,
    }),
  ),
  requester: Type.Optional(requester),
  revoked: Type.Optional(
    Type.Boolean({
      description:
        'If true, the server ends access at once and deletes the request. It is the only mutable field, and it cannot be reset.',
    }),
  ),
};

/**
 * Rules that forbid all changes of the spec except setting `revoked`. They apply to the whole spec, so that they also cover adding and
 * removing optional fields. The API server evaluates them before it calls the validating webhooks, so their messages begin with the same
 * code. `fields` are all fields of the spec.
 */
export function specIsFinal(fields: Readonly<Record<string, unknown>>): CelRule[] {
  const immutable = Object.keys(fields).filter((field) => field !== 'revoked');
  return [
    {
      rule: immutable.map(isUnchanged).join(' && '),
      message: 'SpecImmutable: the spec of a request is immutable; delete the request and create another',
      reason: 'FieldValueForbidden',
    },
    {
      rule: '!has(oldSelf.revoked) || !oldSelf.revoked || (has(self.revoked) && self.revoked)',
      message: 'SpecImmutable: a revoked request stays revoked; create another request',
      reason: 'FieldValueForbidden',
      fieldPath: '.revoked',
    },
  ];
}

const isUnchanged = (field: string): string =>
  `(has(self.${field}) ? has(oldSelf.${field}) && self.${field} == oldSelf.${field} : !has(oldSelf.${field}))`;
