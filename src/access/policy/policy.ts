import type { Code } from '../../api/codes.ts';

/** Why a rule says no, written for the person who asked. */
export interface Violation {
  readonly code: Code;
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
interface Rule<Input> {
  /** What it asks for, a clause: `the caller is logged in`. */
  readonly requirement: string;
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

/** What one rule says of one input, for people and programs. */
export interface Explanation {
  /** Its name in the rule book. */
  readonly rule: string;
  /** `unknown` where the rule looks at something that is not there. */
  readonly verdict: 'pass' | 'fail' | 'unknown';
  /** What it asks for, a clause. */
  readonly requirement: string;
  /** Why it fails. */
  readonly violation?: Violation;
  /** What would make it pass; absent when it does. */
  readonly remedy?: string;
}

/** Every rule of the book, in its order, where a decision stops at the first that objects. */
export function explain<Input>(book: RuleBook<Input>, input: Input): Explanation[] {
  return Object.entries(book).map(([rule, content]) => explainRule(rule, content, input));
}

function explainRule<Input>(
  rule: string,
  { requirement: wants, check, remedy, applies }: Rule<Input>,
  input: Input,
): Explanation {
  const violation = check(input);
  if (violation) return { rule, verdict: 'fail', requirement: wants, violation, remedy: remedy(input) };
  if (applies && !applies(input)) return { rule, verdict: 'unknown', requirement: wants, remedy: remedy(input) };
  return { rule, verdict: 'pass', requirement: wants };
}

/** What the API server passes on of one warning, in characters. */
const MAX_WARNING_LENGTH = 256;

/** One line a rule, for the warnings of an admission answer. */
export function explanationLines(explanations: readonly Explanation[]): string[] {
  return explanations.map(({ rule, verdict, requirement: wants, remedy }) => {
    const line = `${verdictText[verdict]} ${rule}: ${wants}${remedy === undefined ? '' : `; to pass: ${remedy}`}`;
    return line.length > MAX_WARNING_LENGTH ? `${line.slice(0, MAX_WARNING_LENGTH - 1)}…` : line;
  });
}

const verdictText: Readonly<Record<Explanation['verdict'], string>> = { pass: 'pass', fail: 'FAIL', unknown: '????' };
