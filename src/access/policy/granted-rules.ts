import type { GrantedRule, TemplateRule } from '../../api/access/grant.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { CodedError, quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { describeRight, type RbacRule, type Right, rightsOf, uncovered, verbsOn } from '../../rbac/rule-cover.ts';
import { inAnyPosition, type Violation } from './policy.ts';

/** In every grant. */
export const readRule: TemplateRule = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] };
const execResource = 'pods/exec';

/** What every template may hand out: read the granted pod, and exec into it. */
export const baseRules: readonly TemplateRule[] = [
  readRule,
  { apiGroups: [''], resources: [execResource], verbs: ['get', 'create'] },
];

type RuleConfig = Pick<AccessConfig, 'exec' | 'allow' | 'rules'>;

const presets: Record<NonNullable<RuleConfig['allow']>[number], TemplateRule> = {
  logs: { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
  'port-forward': { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get', 'create'] },
};

/** What `allow` and `rules` add to the rules of every grant. On any pod. */
export const addedRules = ({ allow = [], rules = [] }: RuleConfig): readonly TemplateRule[] => [
  ...allow.map((preset) => presets[preset]),
  ...rules,
];

/** On any pod. */
export const rulesOf = (config: RuleConfig): readonly TemplateRule[] => [
  ...((config.exec ?? true) ? baseRules : [readRule]),
  ...addedRules(config),
];

/** Code `InvalidTemplate`, if `exec` is false: nothing is added, or a rule has `pods/exec`. */
export function withoutExecViolations(config: RuleConfig): Violation[] {
  const { exec = true, rules = [] } = config;
  if (exec) return [];
  if (addedRules(config).length === 0) {
    const problem =
      'has neither allow nor rules and exec is false, so a grant would allow only reading the pod; add, for example, allow: [logs]';
    return [invalid('spec.accessConfig', problem)];
  }
  return rules.flatMap(({ resources }, index) => {
    if (!resources.includes(execResource)) return [];
    const problem = `has ${quote(execResource)}, and spec.accessConfig.exec is false; remove one of them`;
    return [invalid(`${field}[${index}].resources`, problem)];
  });
}

/** Each rule limited to the pod by resourceNames. */
export const confinedTo = (pod: string, rules: readonly TemplateRule[]): GrantedRule[] =>
  // The admission policy `drawbridge-server` compares apiGroups with a list of one group.
  rules.map(({ apiGroups, resources, verbs }) => ({
    apiGroups: [...new Set(apiGroups)],
    resources,
    resourceNames: [pod],
    verbs,
  }));

const POD_RESOURCE = /^pods(\/[a-z]+)?$/;
const VERB = /^[a-z]+$/;
const field = 'spec.accessConfig.rules';
/** The check of the author costs one SubjectAccessReview for each distinct right. */
const MAX_RIGHTS = 64;

/** Only named verbs on pods and their subresources can be confined to the granted pod. */
export const rulesViolations = (rules: readonly TemplateRule[] = []): Violation[] => [
  ...rules.flatMap(ruleViolations),
  ...tooManyRights(rules),
];

/** With only the valid names in its rules, so that no violation hides behind the others. */
export function withValidRules<T extends RuleConfig>(config: T): T {
  const { exec = true, rules = [] } = config;
  const valid = rules.map(({ apiGroups, resources, verbs }) => ({
    apiGroups: apiGroups.filter(isValid.apiGroups),
    resources: resources.filter((name) => isValid.resources(name) && (exec || name !== execResource)),
    verbs: verbs.filter(isValid.verbs),
  }));
  return { ...config, rules: tooManyRights(rules).length > 0 ? [] : valid };
}

const isValid = {
  apiGroups: (name: string): boolean => name === '',
  resources: (name: string): boolean => POD_RESOURCE.test(name),
  verbs: (name: string): boolean => VERB.test(name),
};

function ruleViolations({ apiGroups, resources, verbs }: TemplateRule, index: number): Violation[] {
  const rulePath = `${field}[${index}]`;
  const others = (list: keyof typeof isValid, names: readonly string[], allowed: string): Violation[] =>
    names.flatMap((name) => {
      if (isValid[list](name)) return [];
      const problem = `has ${quote(name)}; only ${allowed} are allowed. A rule applies only to the granted pod`;
      return [invalid(`${rulePath}.${list}`, problem)];
    });
  const isEmpty = [apiGroups, resources, verbs].some((list) => list.length === 0);
  return [
    ...others('apiGroups', apiGroups, 'resources of the core group, "",'),
    ...others('resources', resources, 'pods and their subresources, such as pods/log,'),
    ...others('verbs', verbs, 'verbs by name, such as get or create,'),
    ...(isEmpty
      ? [invalid(rulePath, 'has an empty list; it needs at least one API group, one resource, and one verb')]
      : []),
  ];
}

function tooManyRights(rules: readonly TemplateRule[]): Violation[] {
  const found = new Set(rightsOf(rules).map(describeRight)).size;
  if (found <= MAX_RIGHTS) return [];
  const message = `${field} adds ${found} different rights; at most ${MAX_RIGHTS} are allowed: remove some, or create a second template`;
  return [{ code: 'InvalidTemplate', message, field, status: 422 }];
}

const invalid = (path: string, problem: string): Violation => ({
  code: 'InvalidTemplate',
  message: `${path} ${problem}`,
  field: path,
  status: 422,
  key: `${inAnyPosition(path)} ${problem}`,
});

/** Rights beyond `baseRules` and the chart value `grantable`. A message lists nine more. */
export function grantableViolations(config: RuleConfig, grantable: readonly RbacRule[]): Violation[] {
  const missing = notGrantable(config, grantable);
  return missing.map((right, index) => ({
    code: 'NotGrantable',
    // Only one of up to 64 is shown, and its text takes a pass through all grantable rules.
    get message() {
      const shown = missing.slice(index, index + MAX_SHOWN);
      const found = `spec.accessConfig hands out ${shown.map(describeRight).join(', ')}, which this installation does not allow`;
      return `${found}; ${grantableRemedy(shown, grantable)}`;
    },
    field: 'spec.accessConfig',
    status: 403,
    key: describeRight(right),
  }));
}

export function notGrantable(config: RuleConfig, grantable: readonly RbacRule[]): Right[] {
  const rights = uncovered([...baseRules, ...grantable], addedRules(config));
  return [...new Map(rights.map((right) => [describeRight(right), right])).values()];
}

/** For the first three resources of `missing`. */
export function grantableRemedy(missing: readonly Right[], grantable: readonly RbacRule[]): string {
  const allowed = [...baseRules, ...grantable];
  const resources = [...new Set(missing.map(({ resource }) => resource))];
  const facts = resources.slice(0, MAX_RESOURCES).map((resource) => {
    const verbs = verbsOn(allowed, { group: '', resource });
    const subresource = resource.split('/')[1];
    if (verbs.length === 0 && subresource !== undefined && !podSubresources.includes(subresource)) {
      return `Pods have no subresource ${quote(subresource)}, only ${podSubresources.join(', ')}`;
    }
    return `for ${resource} it allows ${verbs.slice(0, MAX_SHOWN).join(', ') || 'nothing'}`;
  });
  const isTypo = facts.every((fact) => fact.startsWith('Pods have no'));
  return `${facts.join('; ')}; ${
    isTypo
      ? 'correct the name'
      : 'write what it allows, or ask an administrator to add the rest to the chart value grantable'
  }`;
}

/** Up to Kubernetes 1.35. */
const podSubresources = [
  'attach',
  'binding',
  'ephemeralcontainers',
  'eviction',
  'exec',
  'log',
  'portforward',
  'proxy',
  'resize',
  'status',
];

/** Rights, and verbs for a resource, in a message. */
const MAX_SHOWN = 10;
/** Resources for which a message says what is allowed. */
const MAX_RESOURCES = 3;

const requiredFields = ['apiGroups', 'resources', 'verbs'] as const;
const ruleFields: readonly string[] = [...requiredFields, 'resourceNames'];

/**
 * The chart value `grantable`: a JSON list of PolicyRules for resources.
 * @throws CodedError `InvalidGrantable` for an invalid field; JsonError
 */
export function parseGrantable(bytes: Uint8Array): RbacRule[] {
  const list = parseJson(bytes);
  if (!Array.isArray(list)) throw invalidGrantable('the file', 'must be a list of rules');
  return list.map((rule, index) => ruleOf(rule, `[${index}]`));
}

function ruleOf(rule: unknown, path: string): RbacRule {
  if (!isRecord(rule)) throw invalidGrantable(path, `must be a rule with ${requiredFields.join(', ')}`);
  // Unknown fields are errors. That includes nonResourceURLs, which no Role can grant.
  const unknown = Object.keys(rule).find((name) => !ruleFields.includes(name));
  if (unknown !== undefined)
    throw invalidGrantable(path, `has ${quote(unknown)}; allowed are ${ruleFields.join(', ')}`);
  const [apiGroups, resources, verbs] = requiredFields.map((name) => stringsOf(rule, name, path));
  const resourceNames = own(rule, 'resourceNames') === undefined ? [] : stringsOf(rule, 'resourceNames', path);
  return { apiGroups: apiGroups ?? [], resources: resources ?? [], verbs: verbs ?? [], resourceNames };
}

function stringsOf(rule: unknown, name: string, path: string): string[] {
  const list = own(rule, name);
  if (Array.isArray(list) && list.length > 0 && list.every((item) => typeof item === 'string')) return list;
  throw invalidGrantable(`${path}.${name}`, 'must be a list of strings, with at least one entry');
}

const invalidGrantable = (path: string, problem: string): CodedError =>
  new CodedError('InvalidGrantable', `grantable rules: ${path} ${problem}`);
