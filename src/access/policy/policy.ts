import type { Code } from '../../api/codes.ts';

/** Why a rule denies, for the caller. */
export interface Violation {
  readonly code: Code;
  /** What was found, what is allowed, what to do. */
  readonly message: string;
  /** JSON path, such as `spec.duration`. */
  readonly field?: string;
  /** 403 not allowed, 404 missing reference, 422 invalid value. */
  readonly status: 403 | 404 | 422;
  /** To compare with an earlier finding, without positions in lists. Default: the message. */
  readonly key?: string;
}

export const refuse = (code: Code, message: string, field: string, status: Violation['status']): Violation => ({
  code,
  message,
  field,
  status,
});

/** Pure, without a clock; never throws. */
export type Check<Input> = (input: Input) => Violation | undefined;

interface Rule<Input> {
  /** A clause: `the caller is logged in`. */
  readonly requirement: string;
  /** With several, `firstViolation` can deny an update that adds one to the stored ones. */
  readonly check: Check<Input> | ((input: Input) => readonly Violation[]);
  /** A clause in the imperative. */
  readonly remedy: (input: Input) => string;
  /** False if the input lacks what the rule checks; `explain` then reports `unknown`. */
  readonly applies?: (input: Input) => boolean;
}

/** By stable names in kebab-case. The first violated rule decides. */
export type RuleBook<Input> = Readonly<Record<string, Rule<Input>>>;

/** Ignores what `stored`, before an update, violates already: users can update old objects. */
export function firstViolation<Input>(book: RuleBook<Input>, input: Input, stored?: Input): Violation | undefined {
  for (const rule of Object.values(book)) {
    const violations = violationsOf(rule, input);
    if (violations.length === 0) continue;
    const introduced = introducedViolation(violations, stored === undefined ? [] : violationsOf(rule, stored));
    if (introduced) return introduced;
  }
  return undefined;
}

function violationsOf<Input>({ check }: Rule<Input>, input: Input): readonly Violation[] {
  const found = check(input);
  return found === undefined ? [] : 'code' in found ? [found] : found;
}

/** Wherever it moved in its list. Each of `before` hides only one. */
export function introducedViolation(now: readonly Violation[], before: readonly Violation[]): Violation | undefined {
  const stored = new Map<string, number>();
  for (const identity of before.map(identityOf)) stored.set(identity, (stored.get(identity) ?? 0) + 1);
  return now.find((violation) => {
    const identity = identityOf(violation);
    const left = stored.get(identity) ?? 0;
    stored.set(identity, left - 1);
    return left <= 0;
  });
}

/** For `Violation.key`: the same wherever an item moves in its list. */
export const inAnyPosition = (path: string): string => path.replace(/\[\d+\]/g, '[]');

function identityOf(violation: Violation): string {
  const { code, message, key = message } = violation;
  return `${code}: ${key}`;
}

export interface Explanation {
  readonly rule: string;
  /** `unknown` if the input lacks what the rule checks. */
  readonly verdict: 'pass' | 'fail' | 'unknown';
  /** A clause. */
  readonly requirement: string;
  /** Only with `fail`. */
  readonly violation?: Violation;
  /** Set by `explain` only with `fail`, and omitted if the violation's message says it. */
  readonly remedy?: string;
}

/** In the order of the book. */
export function explain<Input>(book: RuleBook<Input>, input: Input): Explanation[] {
  return Object.entries(book).map(([name, rule]) => explainRule(name, rule, input));
}

function explainRule<Input>(name: string, rule: Rule<Input>, input: Input): Explanation {
  const { requirement, remedy, applies } = rule;
  const [violation] = violationsOf(rule, input);
  if (violation) return { rule: name, verdict: 'fail', requirement, violation, remedy: remedy(input) };
  if (applies && !applies(input)) return { rule: name, verdict: 'unknown', requirement };
  return { rule: name, verdict: 'pass', requirement };
}
