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

/** Pure, total, no clock. */
export type Check<Input> = (input: Input) => Violation | undefined;

/** One rule of a rule book: a check, and what people are told of it whether it objects or not. */
export interface Rule<Input> {
  /** What it asks for, a clause: `the caller is logged in`. */
  readonly wants: string;
  readonly check: Check<Input>;
  /** What would make it pass, a clause that tells what to do. */
  readonly remedy: (input: Input) => string;
  /** Absent: always. False where what it looks at is not known, so that passing it means nothing. */
  readonly applies?: (input: Input) => boolean;
}

/** Rules by their stable names, kebab-case, in the order in which a person should meet them. */
export type RuleBook<Input> = Readonly<Record<string, Rule<Input>>>;

/** The first rule that objects, in the order of the book. */
export function firstViolation<Input>(book: RuleBook<Input>, input: Input): Violation | undefined {
  for (const { check } of Object.values(book)) {
    const violation = check(input);
    if (violation) return violation;
  }
  return undefined;
}
