import { sizeViolation } from '../../inventory/policy/entry-size.ts';
import { allow, type Handler, refuse } from '../decision.ts';

/** Validating webhook of the entries: nobody makes one too large to be worked with. */
export const limitEntry: Handler = {
  decide({ object, oldObject }) {
    const violation = sizeViolation(oldObject, object);
    return violation ? refuse(violation) : allow;
  },
};
