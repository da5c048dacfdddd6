import { Type } from 'typebox';
import { objectName } from '../schema/fields.ts';
import type { CelRule } from '../schema/structural-schema.ts';
import { requester } from './requester.ts';

/** The fields that both kinds of requests have. */
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
