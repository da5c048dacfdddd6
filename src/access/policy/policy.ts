import type { Code } from '../../api/codes.ts';
import { cutInTheMiddle } from '../../kit/shorten.ts';

/** Why a rule denies, for the caller. */
export interface Violation {
  readonly code: Code;
  /** What was found, what is allowed, what to do. */
  readonly message: string;
  /** JSON path of the field, for example `spec.duration`. */
  readonly field?: string;
  /** HTTP status of the denial: 403 not allowed, 404 missing reference, 422 invalid value. */
  readonly status: 403 | 404 | 422;
  /** What the rule found, to compare it with what it found before an update. Default: the message, without positions in lists. */
  readonly key?: string;
}

/** A violation of a rule about `field`. */
export const refuse = (code: Code, message: string, field: string, status: Violation['status']): Violation => ({
  code,
  message,
  field,
  status,
});

/** Checks one rule. A pure function without a clock; never throws. */
export type Check<Input> = (input: Input) => Violation | undefined;

/** One rule of a rule book: a check, and texts that explain it. */
interface Rule<Input> {
  /** What the rule requires, a clause: `the caller is logged in`. */
  readonly requirement: string;
  /** A check that returns several violations lets `firstViolation` deny an update that adds one to the stored ones. */
  readonly check: Check<Input> | ((input: Input) => readonly Violation[]);
  /** What to do to satisfy the rule, a clause in the imperative. */
  readonly remedy: (input: Input) => string;
  /**
   * False if the input lacks what the rule checks, such as a template that does not exist. `explain` then reports a rule without violation
   * as `unknown`. Default: always true.
   */
  readonly applies?: (input: Input) => boolean;
}

/** Rules by their stable names in kebab-case. The first violated rule decides. */
export type RuleBook<Input> = Readonly<Record<string, Rule<Input>>>;

/**
 * The first violation, in the order of the book. For an update, `stored` is the input before the update: a violation that `stored` has,
 * too, does not count, so that users can update an object that predates a rule.
 */
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

/**
 * The first violation that `before` does not contain. A violation that moved in its list stays the same. Each violation of `before` matches
 * at most one of `now`, so that it does not hide a second, equal violation.
 */
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

/** The code, and the key or the message without the positions in lists that the field has. */
function identityOf(violation: Violation): string {
  const { code, field, key } = violation;
  if (key !== undefined) return `${code}: ${key}`;
  const { message } = violation;
  return `${code}: ${field ? message.replaceAll(field, () => field.replace(/\[\d+\]/g, '[]')) : message}`;
}

/** The result of one rule for one input. */
export interface Explanation {
  /** Its name in the rule book. */
  readonly rule: string;
  /** `unknown` if the input lacks what the rule checks. */
  readonly verdict: 'pass' | 'fail' | 'unknown';
  /** What the rule requires, a clause. */
  readonly requirement: string;
  /** Present if the verdict is `fail`. */
  readonly violation?: Violation;
  /**
   * What to do to satisfy the rule. `explain` sets it only if the verdict is `fail`. Other callers omit it if the message of the violation
   * already says it, and may set it for `unknown`.
   */
  readonly remedy?: string;
}

/** The results of all rules, in the order of the book. */
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

/** Maximum length of a warning, characters. If those of an answer have more than 4,096 together, `encodeAnswer` cuts each to 256. */
const MAX_WARNING = 1024;

/**
 * The warnings of an admission response, at most 1024 characters each: one for each violated rule, then one for each rule that could not be
 * checked, then the number of rules that passed.
 */
export function explanationLines(explanations: readonly Explanation[]): string[] {
  const withVerdict = (wanted: Explanation['verdict']): Explanation[] =>
    explanations.filter(({ verdict }) => verdict === wanted);
  const passed = withVerdict('pass').length;
  return [
    ...[...withVerdict('fail'), ...withVerdict('unknown')].map(explanationLine),
    ...(passed === 0 ? [] : [`${passed} ${passed === 1 ? 'rule' : 'rules'} passed`]),
  ];
}

function explanationLine({ rule, verdict, requirement, violation, remedy = '' }: Explanation): string {
  if (violation && remedy === '') return cutInTheMiddle(`FAIL ${rule}: ${textOf(violation)}`, MAX_WARNING);
  const start = verdict === 'fail' ? `FAIL ${rule}: ${requirement}` : `not checked ${rule}: whether ${requirement}`;
  if (remedy === '') return start;
  const lead = `${start}; to ${verdict === 'fail' ? 'pass' : 'check'}: `;
  return lead + cutInTheMiddle(remedy, MAX_WARNING - lead.length);
}

/** A violation that does not deny, for an admission response: its code and its message, at most 1024 characters. */
export const violationWarning = (violation: ViolationText): string => cutInTheMiddle(textOf(violation), MAX_WARNING);

interface ViolationText {
  readonly code: string;
  readonly message: string;
}

const textOf = ({ code, message }: ViolationText): string => `${code}: ${message}`;
