import type { Rule, RuleBook, Violation } from './policy.ts';

/** What one rule says of one input, for people and programs. */
export interface Explanation {
  /** Its name in the rule book. */
  readonly rule: string;
  /** `unknown` where the rule looks at something that is not there. */
  readonly verdict: 'pass' | 'fail' | 'unknown';
  /** What it asks for, a clause. */
  readonly wants: string;
  /** Why it fails. */
  readonly violation?: Violation;
  /** What would make it pass; absent when it does. */
  readonly remedy?: string;
}

/** Every rule of the book, in its order, where a decision stops at the first that objects. */
export function explain<Input>(book: RuleBook<Input>, input: Input): Explanation[] {
  return Object.entries(book).map(([rule, content]) => explainRule(rule, content, input));
}

function explainRule<Input>(rule: string, { wants, check, remedy, applies }: Rule<Input>, input: Input): Explanation {
  const violation = check(input);
  if (violation) return { rule, verdict: 'fail', wants, violation, remedy: remedy(input) };
  if (applies && !applies(input)) return { rule, verdict: 'unknown', wants, remedy: remedy(input) };
  return { rule, verdict: 'pass', wants };
}

/** What the API server passes on of one warning, in characters. */
const LONGEST = 256;

/** One line a rule, for the warnings of an admission answer. */
export function explanationLines(explanations: readonly Explanation[]): string[] {
  return explanations.map(({ rule, verdict, wants, remedy }) => {
    const line = `${words[verdict]} ${rule}: ${wants}${remedy === undefined ? '' : `; to pass: ${remedy}`}`;
    return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
  });
}

const words: Readonly<Record<Explanation['verdict'], string>> = { pass: 'pass', fail: 'FAIL', unknown: '????' };
