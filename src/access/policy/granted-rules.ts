import type { GrantedRule, TemplateRule } from '../../api/access/grant.ts';
import { CodedError, quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { describeRight, type RbacRule, rightsOf, uncovered } from '../../rbac/rule-cover.ts';
import type { Violation } from './policy.ts';

/** The rules of every grant on its one pod: read it, and exec into it. */
export const baseRules: readonly TemplateRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
];

/** All rules that a template hands out, before they are confined to the granted pod. */
export const rulesOf = ({ rules = [] }: { readonly rules?: readonly TemplateRule[] }): readonly TemplateRule[] => [
  ...baseRules,
  ...rules,
];

/** The rules as in the Role of a grant: each names the pod, because a rule without resourceNames applies to all pods. */
export const confinedTo = (pod: string, rules: readonly TemplateRule[]): GrantedRule[] =>
  rules.map(({ apiGroups, resources, verbs }) => ({ apiGroups, resources, resourceNames: [pod], verbs }));

const POD_RESOURCE = /^pods(\/[a-z]+)?$/;
const VERB = /^[a-z]+$/;
const field = 'spec.accessConfig.rules';
/** Most distinct rights that rules may add. Each costs one SubjectAccessReview per review, and the server sends them concurrently. */
const MAX_RIGHTS = 64;

/**
 * Why a template must not add these rules: allowed are named verbs on pods and their subresources, at most 64 distinct rights. Nothing
 * else can be confined to the granted pod. Codes `InvalidRules` and `TooManyRights`.
 */
export function rulesViolation(rules: readonly TemplateRule[] = []): Violation | undefined {
  for (const [index, { apiGroups, resources, verbs }] of rules.entries()) {
    const group = apiGroups.find((name) => name !== '');
    const resource = resources.find((name) => !POD_RESOURCE.test(name));
    const verb = verbs.find((name) => !VERB.test(name));
    const at = `${field}[${index}]`;
    if (group !== undefined) return invalid(`${at}.apiGroups`, group, 'the core group, "", alone');
    if (resource !== undefined) return invalid(`${at}.resources`, resource, 'pods or a subresource such as pods/log');
    if (verb !== undefined) return invalid(`${at}.verbs`, verb, 'verbs by name, such as get or create');
    if ([apiGroups, resources, verbs].some((list) => list.length === 0)) {
      return invalid(at, '', 'at least one group, resource and verb');
    }
  }
  return tooManyRights(new Set(rightsOf(rules).map(describeRight)).size);
}

function tooManyRights(found: number): Violation | undefined {
  if (found <= MAX_RIGHTS) return undefined;
  return {
    code: 'TooManyRights',
    message: `${field} adds ${found} different rights; at most ${MAX_RIGHTS} are allowed: leave some out, or write a second template`,
    field,
    status: 422,
  };
}

const invalid = (at: string, found: string, allowed: string): Violation => ({
  code: 'InvalidRules',
  message: `${at} has ${quote(found)}; allowed is ${allowed}: a rule applies to the granted pod, and to nothing else`,
  field: at,
  status: 422,
});

/** Code `NotGrantable` if the rules exceed those of every grant and `grantable`, the rules that an administrator allowed in addition. */
export function grantableViolation(
  rules: readonly TemplateRule[] | undefined,
  grantable: readonly RbacRule[],
): Violation | undefined {
  const missing = uncovered([...baseRules, ...grantable], rules ?? []);
  if (missing.length === 0) return undefined;
  return {
    code: 'NotGrantable',
    message:
      `${field} hands out ${missing.slice(0, MAX_SHOWN).map(describeRight).join(', ')}, which this installation does not allow; ` +
      'an administrator can add it to the grantable rules',
    field,
    status: 403,
  };
}

const MAX_SHOWN = 10;

const required = ['apiGroups', 'resources', 'verbs'] as const;
const known: readonly string[] = [...required, 'resourceNames'];

/**
 * Parses the rules that templates may hand out in addition to those of every grant: a JSON list of PolicyRules for resources.
 * @throws CodedError `InvalidGrantable`, which names the place and what is allowed; JsonError if it is not JSON.
 */
export function parseGrantable(bytes: Uint8Array): RbacRule[] {
  const list = parseJson(bytes);
  if (!Array.isArray(list)) throw invalidGrantable('the file', 'must be a list of rules');
  return list.map((rule, index) => ruleOf(rule, `[${index}]`));
}

function ruleOf(rule: unknown, at: string): RbacRule {
  if (!isRecord(rule)) throw invalidGrantable(at, `must be a rule with ${required.join(', ')}`);
  // Unknown fields are errors, nonResourceURLs too: no Role can grant them, and ignoring them would suggest otherwise.
  const unknown = Object.keys(rule).find((field) => !known.includes(field));
  if (unknown !== undefined) throw invalidGrantable(at, `has ${quote(unknown)}; allowed are ${known.join(', ')}`);
  const [apiGroups, resources, verbs] = required.map((field) => textsOf(rule, field, at));
  const resourceNames = own(rule, 'resourceNames') === undefined ? [] : textsOf(rule, 'resourceNames', at);
  return { apiGroups: apiGroups ?? [], resources: resources ?? [], verbs: verbs ?? [], resourceNames };
}

function textsOf(rule: unknown, field: string, at: string): string[] {
  const list = own(rule, field);
  if (Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === 'string')) return list;
  throw invalidGrantable(`${at}.${field}`, 'must be a list of strings, at least one');
}

const invalidGrantable = (at: string, why: string): CodedError =>
  new CodedError('InvalidGrantable', `grantable rules: ${at} ${why}`);
