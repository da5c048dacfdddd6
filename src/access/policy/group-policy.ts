import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import type { Violation } from './policy.ts';

/** A list of groups in a template: its field, the groups, and what they let their members do. */
type GroupList = readonly [field: string, groups: readonly string[], members: string];

const groupLists = ({ allowedGroups, approvals, emergency }: AccessConfig): readonly GroupList[] => [
  ['spec.accessConfig.allowedGroups', allowedGroups, 'request access'],
  ...(approvals?.all ?? []).map(
    ({ groups = [] }, index): GroupList => [
      `spec.accessConfig.approvals.all[${index}].groups`,
      groups,
      'approve requests',
    ],
  ),
  ['spec.accessConfig.emergency.groups', emergency?.groups ?? [], 'request access'],
];

/** `SystemGroup` for the built-in groups of Kubernetes, which contain whole classes of users, such as all authenticated users. */
export function templateGroupsViolation(config: AccessConfig): Violation | undefined {
  for (const [field, groups, members] of groupLists(config)) {
    const group = groups.find((name) => name.startsWith('system:'));
    if (group === undefined) continue;
    return {
      code: 'SystemGroup',
      message:
        `${field} has ${quote(group)}; Kubernetes assigns groups that begin with system: ` +
        `to whole classes of users: name the groups of the people who may ${members}`,
      field,
      status: 403,
    };
  }
  return undefined;
}

/**
 * `InvalidGroup` for a name that begins or ends with white space. Names match letter for letter, so such a name would match no group that
 * an identity provider reports.
 */
export function groupNamesViolation(config: AccessConfig): Violation | undefined {
  for (const [field, groups] of groupLists(config)) {
    const index = groups.findIndex((name) => name !== name.trim());
    if (index >= 0) return invalidGroup(`${field}[${index}]`, groups[index] ?? '');
  }
  return undefined;
}

const invalidGroup = (field: string, name: string): Violation => ({
  code: 'InvalidGroup',
  message: `${field} is ${quote(name)}; names of groups match letter for letter: write ${quote(name.trim())}, without spaces around it`,
  field,
  status: 422,
});
