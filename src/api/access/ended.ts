import { type Static, Type } from 'typebox';
import { own } from '../../kit/json-value.ts';
import { oneOf, time } from '../schema/fields.ts';
import { readBySchema } from '../schema/read.ts';
import { type CelRule, toStructural } from '../schema/structural-schema.ts';

export const ended = Type.Object(
  {
    at: time('When the request ended.'),
    how: oneOf(['Expired', 'Revoked', 'Denied'], {
      description: 'Also the reason of the condition Ready.',
    }),
    reason: Type.String({
      description: 'The code of the denial or of the end, such as NotEligible or TargetPodGone.',
      maxLength: 64,
    }),
    by: Type.Optional(
      Type.String({
        description: 'The user whose vote denied the request or ended its access.',
        maxLength: 1024,
      }),
    ),
    keptUntil: time(
      'When drawbridge removes this request: later while a review of its emergency is owed, earlier if there are too many ended requests.',
    ),
  },
  { description: 'The end, written once. An ended request never opens again.' },
);

/** How and when a request ended. */
export type Ended = Static<typeof ended>;

const structural = toStructural(ended, 'ended');

/** For an end that cannot be read. */
const unreadable: Ended = { at: '', how: 'Revoked', reason: '', keptUntil: '' };

/**
 * Reads nothing else, so that a request with other invalid fields stays ended. An invalid end
 * becomes `Revoked`. Never throws.
 */
export function readEnded(request: unknown): Ended | undefined {
  const value = own(own(request, 'status'), 'ended');
  if (value === undefined || value === null) return undefined;
  const read = readBySchema<Ended>(structural, value, 'status.ended');
  return read.ok ? read.value : unreadable;
}

/** Once set, it stays. At the root, because a rule on the field would not see its removal. */
export const endIsFinal: CelRule = {
  rule: '!has(oldSelf.status) || !has(oldSelf.status.ended) || (has(self.status) && has(self.status.ended) && self.status.ended == oldSelf.status.ended)',
  message: 'status.ended is immutable once it is set; create another request',
  reason: 'FieldValueForbidden',
  fieldPath: '.status.ended',
};
