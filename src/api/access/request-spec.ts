import { type Static, Type } from 'typebox';
import { listOf, objectName, time } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { attestedUser, maxExtensions, maxReasonLength } from './access-config.ts';

/** As the API server authenticated the creator. */
const requester = Type.Object(
  {
    ...attestedUser,
    time: time('When the webhook set these fields.'),
  },
  {
    description:
      'Who created the request. The admission webhook sets it, over any submitted value, and an admission policy denies another user.',
  },
);

/** The creator of a request, as the webhook recorded them. */
export type Requester = Static<typeof requester>;

const reason = (description: string) => Type.Optional(Type.String({ description, maxLength: maxReasonLength }));

const extension = Type.Object({
  by: Type.String({ description: 'How much longer, as a Go duration such as 30m.', minLength: 1, maxLength: 64 }),
  reason: reason('For the approvers and the audit journal.'),
});

/** How much longer the requester asks for, and why. */
export type RequestedExtension = Static<typeof extension>;

/** For requests of every kind. */
export const requestSpec = {
  templateName: objectName('In the namespace of the request.'),
  // No pattern here: the webhook denies invalid durations with a code and a remedy.
  duration: Type.Optional(
    Type.String({
      description:
        'A Go duration such as 30m or 1h30m. Default: the template’s defaultDuration. drawbridge caps it at maxDuration.',
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
  extensions: Type.Optional(
    listOf(extension, maxExtensions, {
      description:
        'The requester adds an entry to extend open access, if the template allows it. Entries are immutable.',
    }),
  ),
  revoked: Type.Optional(
    Type.Boolean({
      description: 'If true, drawbridge ends access at once. It cannot be reset.',
    }),
  ),
  revokedReason: reason('Only together with revoked.'),
};

/** Each has its own rules. */
export const mutableFields = ['claimed', 'extensions', 'revoked', 'revokedReason'] as const;

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
      rule: `!has(oldSelf.claimed) || !oldSelf.claimed || (has(self.claimed) && self.claimed)`,
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
