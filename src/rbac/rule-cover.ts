import type { PolicyRule } from './roles.ts';

/** An RBAC rule: absent or empty `resourceNames` means every name. */
export interface RbacRule extends Omit<PolicyRule, 'resourceNames'> {
  readonly resourceNames?: readonly string[];
}

/** One verb on one resource, for one name or for all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** The resource with its subresource, such as `pods/log`. */
  readonly resource: string;
  /** Absent for every name. */
  readonly name?: string;
}

/**
 * Every single right that the rules grant. A rule with an empty list grants none, except that an empty `resourceNames` means every name.
 */
export function rightsOf(rules: readonly RbacRule[]): Right[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames = [], verbs }) => {
    const names = resourceNames.length > 0 ? resourceNames : [undefined];
    return apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        names.flatMap((name) =>
          verbs.map((verb) => ({ verb, group, resource, ...(name === undefined ? {} : { name }) })),
        ),
      ),
    );
  });
}

/**
 * Whether a user who holds `held` may grant `wanted`, as the API server decides for Roles: one rule must cover each right. Only a wildcard
 * covers a wildcard; a list of all values does not.
 * @testing only tests call it; the server calls `uncovered`.
 */
export function covers(held: readonly RbacRule[], wanted: readonly RbacRule[]): boolean {
  return uncovered(held, wanted).length === 0;
}

/** The rights of `wanted` that no rule of `held` covers. */
export function uncovered(held: readonly RbacRule[], wanted: readonly RbacRule[]): Right[] {
  return rightsOf(wanted).filter((right) => !held.some((rule) => grants(rule, right)));
}

/** The verbs that the rules grant on every object of the resource, without duplicates; `*` means all. */
export function verbsOn(rules: readonly RbacRule[], { group, resource }: Omit<Right, 'verb' | 'name'>): string[] {
  const granting = rules.filter((rule) => rule.verbs.some((verb) => grants(rule, { verb, group, resource })));
  return [...new Set(granting.flatMap(({ verbs }) => verbs))];
}

/** Whether the one rule covers the right. A right on every name needs a rule without `resourceNames`. */
function grants(rule: RbacRule, { verb, group, resource, name }: Right): boolean {
  const { resourceNames = [] } = rule;
  return (
    includesOrAll(rule.verbs, verb) &&
    includesOrAll(rule.apiGroups, group) &&
    (includesOrAll(rule.resources, resource) || rule.resources.includes(subresourcePattern(resource))) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}

const includesOrAll = (list: readonly string[], item: string): boolean => list.includes('*') || list.includes(item);

/**
 * The pattern that covers a subresource of every resource: for `pods/log`, it is `*` + `/log`. Without a subresource, the resource itself.
 */
function subresourcePattern(resource: string): string {
  const slash = resource.indexOf('/');
  return slash < 0 ? resource : `*${resource.slice(slash)}`;
}

/** The right for messages, such as `get pods/log`. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const where = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${where}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`;
}
