import { cutInTheMiddle } from '../../kit/shorten.ts';
import type { Explanation } from './policy.ts';

/**
 * The format of warnings of admission responses, which have no fields, and its reader:
 * `FAIL rule: requirement; to pass: remedy`, `not checked rule: requirement; to check: remedy`,
 * `CODE: message` for a violation that does not deny, and `17 rules passed`.
 */
export interface WarningLine {
  readonly verdict: 'fail' | 'not checked' | 'pass' | 'note';
  /** Of a violation, its code. */
  readonly rule: string;
  readonly requirement: string;
  readonly remedy: string;
  /** A violation that does not deny. */
  readonly isViolation: boolean;
}

/** Characters. Beyond 4,096 in one answer, `encodeAnswer` cuts each warning to 256. */
const MAX_WARNING = 1024;

/** Warnings of an admission response: violated rules, unchecked rules, then how many passed. */
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

/** A violation that does not deny. */
export const violationWarning = (violation: ViolationText): string => cutInTheMiddle(textOf(violation), MAX_WARNING);

interface ViolationText {
  readonly code: string;
  readonly message: string;
}

const textOf = ({ code, message }: ViolationText): string => `${code}: ${message}`;

/** Any other text is a note. */
export function parseWarning(warning: string): WarningLine {
  const line = (found: Partial<WarningLine>): WarningLine => ({
    verdict: 'note',
    rule: '',
    requirement: '',
    remedy: '',
    isViolation: false,
    ...found,
  });
  const [, verdict, rule = '', requirement = '', remedy = ''] =
    /^(FAIL|not checked) ([\w-]+): (.*?)(?:; to (?:pass|check): (.*))?$/.exec(warning) ?? [];
  if (verdict !== undefined)
    return line({ verdict: verdict === 'FAIL' ? 'fail' : 'not checked', rule, requirement, remedy });
  const [, code, message = ''] = /^([A-Z][A-Za-z]+): (.*)$/s.exec(warning) ?? [];
  if (code !== undefined) return line({ verdict: 'fail', rule: code, requirement: message, isViolation: true });
  const [, passed] = /^(\d+ rules?) passed$/.exec(warning) ?? [];
  return passed === undefined ? line({ requirement: warning }) : line({ verdict: 'pass', rule: passed });
}
