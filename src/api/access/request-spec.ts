import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { attestedUser, maxExtensions, maxReasonLength } from './access-config.ts';

/** As the API server authenticated the creator. */
const requester = Type.Object(
  {
    ...attestedUser,
    time: time('When the webhook set these fields.'),
    nonce: Type.Optional(
      Type.String({ description: 'A random value that makes the signature unique.', maxLength: 64 }),
    ),
    signature: Type.Optional(
      Type.String({
        description: 'Proves that the webhook wrote these fields for this request. Otherwise, the server denies it.',
        maxLength: 128,
      }),
    ),
  },
  {
    description: 'Who created the request. The admission webhook sets it, over any submitted value.',
  },
);

/** The creator of a request, as the webhook recorded them. */
export type Requester = Static<typeof requester>;

/** What the webhook signs: who created the request, when, and for what. */
export interface RequesterAttestation {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** The signature does not cover `requester` and the mutable fields. */
  readonly spec: object;
  readonly requester: Pick<Requester, 'username' | 'uid' | 'groups' | 'time'>;
}

/** With these, the webhook signs an attestation. */
export type RequesterSignature = Required<Pick<Requester, 'nonce' | 'signature'>>;

const reason = (description: string) => Type.Optional(Type.String({ description, maxLength: maxReasonLength }));
const signature = (description: string) => Type.Optional(Type.String({ description, maxLength: 128 }));

const extension = Type.Object({
  by: Type.String({ description: 'How much longer, as a Go duration such as 30m.', minLength: 1, maxLength: 64 }),
  reason: reason('For the approvers and the audit journal.'),
  signature: signature('Proves that the requester asked for this extension. The admission webhook sets it.'),
});

/** How much longer the requester asks for, and why. */
export type RequestedExtension = Static<typeof extension>;

export interface ChangedRequest {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The webhook signs it if the requester makes it. `index` counts from 0. */
export type RequesterChange =
  /** When the requester claimed the access, RFC 3339, by the clock of the webhook. */
  | { readonly field: 'claimed'; readonly time: string }
  | ({ readonly field: 'extensions'; readonly index: number } & Pick<RequestedExtension, 'by' | 'reason'>);

/** The time of the claim (RFC 3339) counts, however late the leader reads it. */
export const claimSignature = (time: string, mac: string): string => `${time} ${mac}`;

/** Nothing if it is malformed. Does not verify the MAC. */
export function readClaim(text: string | undefined): { readonly time: string; readonly mac: string } | undefined {
  const [time, mac] = text?.split(' ') ?? [];
  return time === undefined || mac === undefined ? undefined : { time, mac };
}

/** For requests of every kind. */
export const requestSpec = {
  templateName: objectName('In the namespace of the request.'),
  // No pattern here: the webhook denies invalid durations with a code and a remedy.
  duration: Type.Optional(
    Type.String({
      description:
        'A Go duration such as 30m or 1h30m. Default: the template’s defaultDuration. The server caps it at maxDuration.',
      maxLength: 64,
    }),
  ),
  reason: reason('Why access is needed, such as a ticket. An emergency requires it, and the template may.'),
  startAt: Type.Optional(
    time('When access starts at the earliest, if the template allows it. If unset, as soon as possible.'),
  ),
  emergency: Type.Optional(
    Type.Boolean({
      description:
        'If true, access opens without approvals, for groups that the template names. Another person reviews it afterwards.',
    }),
  ),
  requester: Type.Optional(requester),
  claimed: Type.Optional(
    Type.Boolean({
      description:
        'With claimWithin, the requester sets it to true to start access while status.approval.state is Claimable. It cannot be reset.',
    }),
  ),
  claimSignature: signature('Proves that the requester set claimed, and when. The admission webhook sets it.'),
  extensions: Type.Optional(
    listOf(extension, maxExtensions, {
      description:
        'The requester adds an entry to extend open access, if the template allows it. Entries are immutable.',
    }),
  ),
  revoked: Type.Optional(
    Type.Boolean({
      description: 'If true, the server ends access at once. It cannot be reset.',
    }),
  ),
  revokedReason: reason('Only together with revoked.'),
};

/** Each has its own rules. */
export const mutableFields = ['claimed', 'claimSignature', 'extensions', 'revoked', 'revokedReason'] as const;

/** For messages about other fields. */
export const mutableText = 'only claimed, extensions, and revoked with its reason can change';
/** Instead of a change of `spec.duration`. */
export const extendText =
  'to extend open access, if the template allows extensions, add an entry to spec.extensions (drawbridge extend)';

/**
 * On the whole spec, to cover optional fields. The rules run before the webhooks, so the messages
 * begin with the webhook's code.
 */
export function specIsFinal(fields: Readonly<Record<string, unknown>>): CelRule[] {
  const mutable: readonly string[] = mutableFields;
  const immutable = Object.keys(fields).filter((field) => !mutable.includes(field));
  return [
    {
      rule: immutable.map(isUnchanged).join(' && '),
      message: `SpecImmutable: ${mutableText}; ${extendText}; for all else, create another request`,
      reason: 'FieldValueForbidden',
    },
    {
      rule: '!has(oldSelf.revoked) || !oldSelf.revoked || (has(self.revoked) && self.revoked)',
      message: 'SpecImmutable: a revoked request stays revoked; create another request',
      reason: 'FieldValueForbidden',
      fieldPath: '.revoked',
    },
    {
      rule: `${isUnchanged('revokedReason')} || (has(self.revoked) && self.revoked && !(has(oldSelf.revoked) && oldSelf.revoked))`,
      message:
        'SpecImmutable: revokedReason can be set only in the update that changes revoked to true; once a request is revoked, its reason cannot change',
      reason: 'FieldValueForbidden',
      fieldPath: '.revokedReason',
    },
    {
      rule: `!has(oldSelf.claimed) || !oldSelf.claimed || (has(self.claimed) && self.claimed && ${isUnchanged('claimSignature')})`,
      message: 'SpecImmutable: claimed access stays claimed',
      reason: 'FieldValueForbidden',
      fieldPath: '.claimed',
    },
    {
      rule:
        '!has(oldSelf.extensions) || (has(self.extensions) && self.extensions.size() >= oldSelf.extensions.size() && ' +
        `[${Array.from({ length: maxExtensions }, (_, index) => index).join(', ')}].all(index, index >= oldSelf.extensions.size() || ` +
        'self.extensions[index] == oldSelf.extensions[index]))',
      message:
        'SpecImmutable: extensions cannot be changed or removed; when the last one is decided, add another at the end: in a JSON patch, the path is /spec/extensions/-',
      reason: 'FieldValueForbidden',
      fieldPath: '.extensions',
    },
  ];
}

const isUnchanged = (field: string): string =>
  `(has(self.${field}) ? has(oldSelf.${field}) && self.${field} == oldSelf.${field} : !has(oldSelf.${field}))`;
