/** Why a rule says no, written for the person who asked. */
export interface Violation {
  /** Stable code, UpperCamelCase: `NotEligible`, `TemplateNotFound`, `InvalidDuration` … */
  readonly code: string;
  /** What was found, what is allowed, what to do. */
  readonly message: string;
  /** JSON path of the field, for example `spec.duration`. */
  readonly field?: string;
  /** HTTP status of the denial: 403 not allowed, 404 missing reference, 422 invalid value. */
  readonly status: 403 | 404 | 422;
}

/** One rule of a rule book: pure, total, no clock. */
export type Check<Input> = (input: Input) => Violation | undefined;

/** The first rule that objects, in the order of the book. */
export function firstViolation<Input>(book: readonly Check<Input>[], input: Input): Violation | undefined {
  for (const check of book) {
    const violation = check(input);
    if (violation) return violation;
  }
  return undefined;
}
