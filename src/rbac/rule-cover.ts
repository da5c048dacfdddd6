import type { PolicyRule } from './roles.ts';

/** A rule as RBAC has it: no `resourceNames`, or an empty list, means every name. */
export interface RbacRule extends Omit<PolicyRule, 'resourceNames'> {
  readonly resourceNames?: readonly string[];
}

/** One verb on one resource, of one name or of all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  /** With its subresource: `pods/log`. */
  readonly resource: string;
  /** Absent: every name. */
  readonly name?: string;
}

/** Every single right that the rules give. A list that is empty, but for the names, gives none. */
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
 * Whether whoever holds `held` may hand out `asked`, as the API server decides it for Roles: each right has to lie within one rule.
 * A wildcard is covered by a wildcard alone, never by a list of everything there is.
 * @testing asks it of what charts give; the server asks which rights are missing.
 */
export function covers(held: readonly RbacRule[], asked: readonly RbacRule[]): boolean {
  return uncovered(held, asked).length === 0;
}

/** The rights of `asked` that lie within no rule of `held`. */
export function uncovered(held: readonly RbacRule[], asked: readonly RbacRule[]): Right[] {
  return rightsOf(asked).filter((right) => !held.some((rule) => grants(rule, right)));
}

function grants(rule: RbacRule, { verb, group, resource, name }: Right): boolean {
  const { resourceNames = [] } = rule;
  return (
    hasOrAll(rule.verbs, verb) &&
    hasOrAll(rule.apiGroups, group) &&
    (hasOrAll(rule.resources, resource) || rule.resources.includes(ofAnyResource(resource))) &&
    (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name)))
  );
}

const hasOrAll = (list: readonly string[], item: string): boolean => list.includes('*') || list.includes(item);

/** Log of pods is within log of anything; a resource itself is within no pattern but the wildcard. */
function ofAnyResource(resource: string): string {
  const slash = resource.indexOf('/');
  return slash < 0 ? resource : `*${resource.slice(slash)}`;
}

/** `get pods/log`, for people. */
export function describeRight({ verb, group, resource, name }: Right): string {
  const where = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${where}${name === undefined ? '' : ` ${JSON.stringify(name)}`}`;
}
