import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';

/** The creator of the request, as the API server authenticated them. */
const requester = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(Type.String({ maxLength: 1024 }), 1024, {
      description: 'The groups that the user was in at that time.',
      default: [],
    }),
    time: time('When the request was created.'),
    nonce: Type.Optional(Type.String({ description: 'Makes the signature valid for one request.', maxLength: 64 })),
    signature: Type.Optional(
      Type.String({
        description:
          'Proves that the webhook wrote these fields for this request. The server denies a request without it.',
        maxLength: 128,
      }),
    ),
  },
  {
    description:
      'The user who created the request. The admission webhook sets it and overwrites any value that was sent.',
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
        'How long access is needed, as a Go duration such as 30m or 1h30m. Defaults to the template’s defaultDuration; capped at its maxDuration.',
      maxLength: 64,
    }),
  ),
  requester: Type.Optional(requester),
  revoked: Type.Optional(
    Type.Boolean({
      description:
        'Set it to true to end access at once; the server then deletes the request. It is the only mutable field, and cannot be reset.',
    }),
  ),
};

/**
 * Rules over the whole spec, so that adding or removing an optional field counts as a change, too. The API server evaluates them before
 * it calls the validating webhooks, so their messages start with the same code. `fields` are all fields of the spec.
 */
export function specIsFinal(fields: Readonly<Record<string, unknown>>): CelRule[] {
  const kept = Object.keys(fields).filter((field) => field !== 'revoked');
  return [
    {
      rule: kept.map(isKept).join(' && '),
      message: 'SpecImmutable: the spec of a request is immutable: delete the request and create another',
      reason: 'FieldValueForbidden',
    },
    {
      rule: '!has(oldSelf.revoked) || !oldSelf.revoked || (has(self.revoked) && self.revoked)',
      message: 'SpecImmutable: a revoked request stays revoked: create another request',
      reason: 'FieldValueForbidden',
      fieldPath: '.revoked',
    },
  ];
}

const isKept = (field: string): string =>
  `(has(self.${field}) ? has(oldSelf.${field}) && self.${field} == oldSelf.${field} : !has(oldSelf.${field}))`;
