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
};

/**
 * Over the whole spec, so that adding or taking away an optional field counts as a change too. The API server asks it before the
 * validating webhooks, so it says the code that they would.
 */
export const specIsFinal: CelRule = {
  rule: 'self == oldSelf',
  message: 'SpecImmutable: a request cannot be changed once it is made: delete it and make another',
  reason: 'FieldValueForbidden',
};
