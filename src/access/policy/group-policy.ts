import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import type { Violation } from './policy.ts';

/** `SystemGroup` for the built-in groups of Kubernetes, which contain whole classes of users, such as all authenticated users. */
export function templateGroupsViolation({ allowedGroups, emergency }: AccessConfig): Violation | undefined {
  return (
    systemGroupViolation(allowedGroups, 'spec.accessConfig.allowedGroups') ??
    systemGroupViolation(emergency?.groups ?? [], 'spec.accessConfig.emergency.groups')
  );
}

function systemGroupViolation(groups: readonly string[], field: string): Violation | undefined {
  const group = groups.find((name) => name.startsWith('system:'));
  if (group === undefined) return undefined;
  return {
    code: 'SystemGroup',
    message:
      `${field} has ${quote(group)}; Kubernetes assigns groups that begin with system: ` +
      'to whole classes of users: name the groups of the people who may request access',
    field,
    status: 403,
  };
}

/**
 * `InvalidGroup` for a name that begins or ends with white space. Names match letter for letter, so such a name would match no group that
 * an identity provider reports.
 */
export function groupNamesViolation({ allowedGroups, approvals, emergency }: AccessConfig): Violation | undefined {
  const approvers = (approvals?.all ?? []).map(
    ({ groups = [] }, index) => [`approvals.all[${index}].groups`, groups] as const,
  );
  const lists = [
    ['allowedGroups', allowedGroups],
    ...approvers,
    ['emergency.groups', emergency?.groups ?? []],
  ] as const;
  for (const [list, groups] of lists) {
    const index = groups.findIndex((name) => name !== name.trim());
    if (index >= 0) return invalidGroup(`spec.accessConfig.${list}[${index}]`, groups[index] ?? '');
  }
  return undefined;
}

const invalidGroup = (field: string, name: string): Violation => ({
  code: 'InvalidGroup',
  message: `${field} is ${quote(name)}; names of groups match letter for letter: write ${quote(name.trim())}, without spaces around it`,
  field,
  status: 422,
});
