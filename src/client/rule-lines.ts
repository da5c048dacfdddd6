import { parseWarning, type WarningLine } from '../access/policy/warnings.ts';
import { codeEntries } from './code-entries.ts';
import type { Column } from './output.ts';

/** One rule, from a warning of the server, or a note on what the rules do not cover. */
export type RuleLine = Omit<WarningLine, 'isViolation'>;

/** A `Kyverno: …` of other webhooks only looks like a violation: it is a note. */
function lineOf(warning: string): WarningLine {
  const line = parseWarning(warning);
  const isOurs = !line.isViolation || codeEntries.some(({ code }) => code === line.rule);
  return isOurs ? line : { verdict: 'note', rule: '', requirement: warning, remedy: '', isViolation: false };
}

/** Of a dry run of a request: says who can correct the template. */
export function requestLine(warning: string): RuleLine {
  const { isViolation, ...line } = lineOf(warning);
  if (!isViolation) return line;
  // An administrator sets a quota or a Pod Security level.
  const who =
    line.rule === 'ResourceRefused' ? 'the author of the template or an administrator' : 'the author of the template';
  return { ...line, remedy: `ask ${who} to correct this: ${line.requirement}` };
}

/** Of a dry run of a template, for its author. */
export function templateLine(warning: string): RuleLine {
  const { isViolation: _, ...line } = lineOf(warning);
  return line;
}

/** A violation in the template begins with a code. The leader will deny, unless it is corrected. */
export const isAboutTemplate = (warning: string): boolean => lineOf(warning).isViolation;

export const ruleLine = (verdict: RuleLine['verdict'], rule: string, requirement: string): RuleLine => ({
  verdict,
  rule,
  requirement,
  remedy: '',
});

export const ruleColumns: readonly Column<RuleLine>[] = [
  { title: 'VERDICT', text: ({ verdict }) => verdict },
  { title: 'RULE', text: ({ rule }) => rule },
  { title: 'TO PASS', long: true, text: ({ remedy, requirement }) => remedy || requirement },
  { title: 'WHAT THE RULE REQUIRES', wide: true, text: ({ requirement }) => requirement },
];
