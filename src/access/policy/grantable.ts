import type { RbacRule } from '../../grants/rule-cover.ts';
import { CodedError, quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';

const required = ['apiGroups', 'resources', 'verbs'] as const;
const known: readonly string[] = [...required, 'resourceNames'];

/**
 * Reads the list of rules that templates may hand out besides what every grant gives: a JSON list of PolicyRules for resources.
 * @throws CodedError `InvalidGrantable` that says where and what is allowed; JsonError when it is not JSON.
 */
export function parseGrantable(bytes: Uint8Array): RbacRule[] {
  const list = parseJson(bytes);
  if (!Array.isArray(list)) throw invalid('the file', 'must be a list of rules');
  return list.map((rule, index) => ruleOf(rule, `[${index}]`));
}

function ruleOf(rule: unknown, at: string): RbacRule {
  if (!isRecord(rule)) throw invalid(at, `must be a rule with ${required.join(', ')}`);
  // nonResourceURLs too: no Role can give them, and what is not understood must not seem to be.
  const unknown = Object.keys(rule).find((field) => !known.includes(field));
  if (unknown !== undefined) throw invalid(at, `has ${quote(unknown)}; allowed are ${known.join(', ')}`);
  const [apiGroups, resources, verbs] = required.map((field) => textsOf(rule, field, at));
  const resourceNames = own(rule, 'resourceNames') === undefined ? [] : textsOf(rule, 'resourceNames', at);
  return { apiGroups: apiGroups ?? [], resources: resources ?? [], verbs: verbs ?? [], resourceNames };
}

function textsOf(rule: unknown, field: string, at: string): string[] {
  const list = own(rule, field);
  if (Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === 'string')) return list;
  throw invalid(`${at}.${field}`, 'must be a list of strings, at least one');
}

const invalid = (at: string, why: string): CodedError =>
  new CodedError('InvalidGrantable', `grantable rules: ${at} ${why}`);
