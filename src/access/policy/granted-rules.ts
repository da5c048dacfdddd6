import type { GrantedRule, TemplateRule } from '../../api/access/grant.ts';
import { CodedError, quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { describeRight, type RbacRule, rightsOf, uncovered } from '../../rbac/rule-cover.ts';
import type { Violation } from './policy.ts';

/** What every grant gives on its one pod: see it, and exec into it. */
export const baseRules: readonly TemplateRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
];

/** All that a template hands out, before it is confined to the one pod. */
export const rulesOf = ({ rules = [] }: { readonly rules?: readonly TemplateRule[] }): readonly TemplateRule[] => [
  ...baseRules,
  ...rules,
];

/** The same as the Role of a grant has it: the pod is named in every rule, because a rule without names means all pods. */
export const confinedTo = (pod: string, rules: readonly TemplateRule[]): GrantedRule[] =>
  rules.map(({ apiGroups, resources, verbs }) => ({ apiGroups, resources, resourceNames: [pod], verbs }));

const POD_RESOURCE = /^pods(\/[a-z]+)?$/;
const VERB = /^[a-z]+$/;
const field = 'spec.accessConfig.rules';
/** Different rights that rules may add. Each is one SubjectAccessReview for each review, and they are asked all at once. */
const MAX_RIGHTS = 64;

/**
 * What a template may add: named verbs on the pod and its subresources, 64 different rights at most. Everything else cannot be confined
 * to the pod that is granted.
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
  message: `${at} has ${quote(found)}; allowed is ${allowed}: a rule gives rights on the pod that is granted, and on nothing else`,
  field: at,
  status: 422,
});

/** Whether an administrator lets the server hand out all of it; `grantable` is besides what every grant gives. */
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
 * Reads the list of rules that templates may hand out besides what every grant gives: a JSON list of PolicyRules for resources.
 * @throws CodedError `InvalidGrantable` that says where and what is allowed; JsonError when it is not JSON.
 */
export function parseGrantable(bytes: Uint8Array): RbacRule[] {
  const list = parseJson(bytes);
  if (!Array.isArray(list)) throw invalidGrantable('the file', 'must be a list of rules');
  return list.map((rule, index) => ruleOf(rule, `[${index}]`));
}

function ruleOf(rule: unknown, at: string): RbacRule {
  if (!isRecord(rule)) throw invalidGrantable(at, `must be a rule with ${required.join(', ')}`);
  // nonResourceURLs too: no Role can give them, and what is not understood must not seem to be.
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
