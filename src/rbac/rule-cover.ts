import type { PolicyRule } from './roles.ts';

/** Absent or empty `resourceNames` means every name. */
export interface RbacRule extends Omit<PolicyRule, 'resourceNames'> {
  readonly resourceNames?: readonly string[];
}

/** One verb on one resource, for one name or for all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With its subresource, such as `pods/log`. */
  readonly resource: string;
  /** Absent for every name. */
  readonly name?: string;
}

/** An empty list grants nothing, but an empty `resourceNames` means every name. */
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
 * As the API server decides: one rule must cover each right, and only a wildcard a wildcard.
 * @testing only tests call it; the server calls `uncovered`.
 */
export function covers(held: readonly RbacRule[], wanted: readonly RbacRule[]): boolean {
  return uncovered(held, wanted).length === 0;
}

export function uncovered(held: readonly RbacRule[], wanted: readonly RbacRule[]): Right[] {
  return rightsOf(wanted).filter((right) => !held.some((rule) => grants(rule, right)));
}

/** On every object of the resource; `*` means all. */
export function verbsOn(rules: readonly RbacRule[], { group, resource }: Omit<Right, 'verb' | 'name'>): string[] {
  const granting = rules.filter((rule) => rule.verbs.some((verb) => grants(rule, { verb, group, resource })));
  return [...new Set(granting.flatMap(({ verbs }) => verbs))];
}

/** A right on every name needs a rule without `resourceNames`. */
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

/** For `pods/log`, `*` + `/log`, which covers it for every resource; else the resource itself. */
function subresourcePattern(resource: string): string {
  const slash = resource.indexOf('/');
  return slash < 0 ? resource : `*${resource.slice(slash)}`;
}

/** Such as `get pods/log`. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const where = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${where}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`;
}
