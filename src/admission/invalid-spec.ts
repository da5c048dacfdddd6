import type { FieldError } from '../api/schema/read.ts';
import { type Decision, refuse } from './decision.ts';

/** All that is wrong with a spec, in one refusal. */
export function invalidSpec(errors: readonly FieldError[]): Decision {
  const [first] = errors;
  return refuse({
    code: 'InvalidSpec',
    message: errors.map(({ field, message }) => `${field} ${message}`).join('; '),
    status: 422,
    ...(first ? { field: first.field } : {}),
  });
}
