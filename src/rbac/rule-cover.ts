import type { PolicyRule } from './roles.ts';

/** An RBAC rule: absent or empty `resourceNames` means every name. */
export interface RbacRule extends Omit<PolicyRule, 'resourceNames'> {
  readonly resourceNames?: readonly string[];
}

/** One verb on one resource, for one name or for all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With its subresource: `pods/log`. */
  readonly resource: string;
  /** Absent: every name. */
  readonly name?: string;
}

/** Every single right that the rules grant. An empty list grants none, except `resourceNames`. */
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
 * Whether a holder of `held` may hand out `asked`, as the API server decides it for Roles: one rule must cover each right. Only a wildcard
 * covers a wildcard; a list of all values does not.
 * @testing for the roles of charts; the server uses `uncovered`.
 */
export function covers(held: readonly RbacRule[], asked: readonly RbacRule[]): boolean {
  return uncovered(held, asked).length === 0;
}

/** The rights of `asked` that no rule of `held` covers. */
export function uncovered(held: readonly RbacRule[], asked: readonly RbacRule[]): Right[] {
  return rightsOf(asked).filter((right) => !held.some((rule) => grants(rule, right)));
}

function grants(rule: RbacRule, { verb, group, resource, name }: Right): boolean {
  const { resourceNames = [] } = rule;
  return (
    includesOrAll(rule.verbs, verb) &&
    includesOrAll(rule.apiGroups, group) &&
    (includesOrAll(rule.resources, resource) || rule.resources.includes(ofAnyResource(resource))) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}

const includesOrAll = (list: readonly string[], item: string): boolean => list.includes('*') || list.includes(item);

/** The pattern that matches a subresource of any resource: `*` + `/log` for `pods/log`. A resource itself has no such pattern. */
function ofAnyResource(resource: string): string {
  const slash = resource.indexOf('/');
  return slash < 0 ? resource : `*${resource.slice(slash)}`;
}

/** `get pods/log`, for people. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const where = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${where}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`;
}
