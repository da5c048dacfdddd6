import { RE2JS } from 're2js';
import type { ReasonConfig } from '../../api/access/access-config.ts';
import { describe, quote } from '../../kit/errors.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Violation } from './policy.ts';

/** Instructions of a pattern: with these, a match takes at most 30 ms on two busy cores. */
const maxProgramSize = 256;
const patternField = 'spec.accessConfig.reason.pattern';

/** `InvalidTemplate`: no valid RE2 syntax, or too large. */
export function reasonConfigViolation(config: ReasonConfig | undefined): Violation | undefined {
  if (config?.pattern === undefined) return undefined;
  const compiled = compile(config.pattern);
  if (!('problem' in compiled)) return undefined;
  return {
    code: 'InvalidTemplate',
    message: `${patternField} ${quote(config.pattern)} ${compiled.problem}`,
    field: patternField,
    status: 422,
  };
}

/** `InvalidRequest`, or `InvalidTemplate` if no reason can match. */
export function reasonViolation(reason: string | undefined, config: ReasonConfig | undefined): Violation | undefined {
  if (!config) return undefined;
  const length = [...(reason ?? '').trim()].length;
  if (length < config.minLength) {
    const found = length === 0 ? 'is missing' : `has ${characters(length)}`;
    return violation('InvalidRequest', `spec.reason ${found}; write ${reasonText(config)}`);
  }
  if (config.pattern === undefined) return undefined;
  const compiled = compile(config.pattern);
  // Stored without the webhook, which denies such patterns. No reason can match.
  if ('problem' in compiled) return reasonConfigViolation(config);
  if (compiled.pattern.matcher(reason ?? '').find()) return undefined;
  return violation(
    'InvalidRequest',
    `spec.reason ${quote(reason ?? '')} does not match ${quote(config.pattern)}; write a reason that matches${promptText(config)}`,
  );
}

/** Such as `at least 10 characters, with text that matches "^INC-[0-9]+": the ticket`. */
export function reasonText(config: ReasonConfig): string {
  const matching = config.pattern === undefined ? '' : `, with text that matches ${quote(config.pattern)}`;
  return `at least ${characters(config.minLength)}${matching}${promptText(config)}`;
}

const promptText = ({ prompt }: ReasonConfig): string => (prompt === undefined ? '' : `: ${prompt}`);

/** `{match}` becomes what `pattern` matches, percent-encoded. Undefined if nothing matches. */
export function reasonLink(reason: string, { link, pattern }: ReasonConfig): string | undefined {
  if (link === undefined || !link.includes('{match}')) return link;
  const compiled = pattern === undefined ? undefined : compile(pattern);
  if (!compiled || 'problem' in compiled) return undefined;
  const matcher = compiled.pattern.matcher(reason);
  return matcher.find() ? link.replace('{match}', () => encodeURIComponent(matcher.group() ?? '')) : undefined;
}

type Compiled = { readonly pattern: RE2JS } | { readonly problem: string };

/** By source: compilation takes milliseconds. Bounded, because templates may have any pattern. */
const patterns = new RecentMap<string, Compiled>(256);

function compile(source: string): Compiled {
  const cached = patterns.get(source);
  if (cached) return cached;
  const compiled = tryCompile(source);
  patterns.set(source, compiled);
  return compiled;
}

function tryCompile(source: string): Compiled {
  try {
    const pattern = RE2JS.compile(source);
    const size = pattern.programSize();
    if (size <= maxProgramSize) return { pattern };
    return {
      problem: `compiles to ${size} instructions; at most ${maxProgramSize} are allowed: lower its repetition counts, or split or shorten it`,
    };
  } catch (error) {
    return { problem: `is not valid (${describe(error)}); write RE2 syntax, for example ^(INC|CHG)-[0-9]+` };
  }
}

const characters = (count: number): string => (count === 1 ? '1 character' : `${count} characters`);

const violation = (code: Violation['code'], message: string): Violation => ({
  code,
  message,
  field: 'spec.reason',
  status: 422,
});
