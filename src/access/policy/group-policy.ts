import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { inAnyPosition, type Violation } from './policy.ts';

/** `members`: what the template lets them do. */
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

/** `system:` is reserved by Kubernetes, for example for all authenticated users. */
export const templateGroupsViolations = (config: AccessConfig): Violation[] =>
  groupLists(config).flatMap(([field, groups, members]) =>
    groups.filter((name) => name.startsWith('system:')).map((group) => systemGroup(field, group, members)),
  );

const systemGroup = (field: string, group: string, members: string): Violation => ({
  code: 'InvalidTemplate',
  message:
    `${field} has ${quote(group)}; Kubernetes reserves groups that begin with system:, for example for all authenticated users; ` +
    `name the groups of the people who may ${members}`,
  field,
  status: 403,
  key: `${inAnyPosition(field)} ${group}`,
});

/** Names compare exactly, so outer white space would match no group of an identity provider. */
export const groupNamesViolations = (config: AccessConfig): Violation[] =>
  groupLists(config).flatMap(([field, groups]) =>
    groups.flatMap((name, index) => (name === name.trim() ? [] : [invalidGroup(`${field}[${index}]`, name)])),
  );

const invalidGroup = (field: string, name: string): Violation => ({
  code: 'InvalidGroup',
  message: `${field} is ${quote(name)}; names of groups match letter for letter: ${name.trim() === '' ? 'remove it' : `write ${quote(name.trim())}, without spaces around it`}`,
  field,
  status: 422,
  key: `${inAnyPosition(field)} ${name}`,
});
