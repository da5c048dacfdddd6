import { showName } from '../access/policy/names.ts';
import type { ApprovalEntry } from '../api/access/access-config.ts';
import type { KubeObject } from '../api/object.ts';
import { shellWord } from '../kit/shell-word.ts';
import type { Subject } from './rbac-view.ts';
import { templateSpecOf } from './request-state.ts';

/** Whether grants through the template permit exec into their pod. */
export function permitsExec(template: KubeObject): boolean {
  const { exec, rules = [] } = templateSpecOf(template).accessConfig ?? {};
  return exec !== false || rules.some(({ resources }) => resources.includes('pods/exec'));
}

/** Required approvals: `peer: 1 of group devs; security: 2 of groups secops or sre`. */
export function approversText(template: KubeObject): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  return all
    .map(({ name, count = 1, groups = [] }) => {
      if (groups.length === 0) return `${name}: ${count} with the verb approve on ${template.metadata.name}`;
      return `${name}: ${count} of group${groups.length === 1 ? '' : 's'} ${groups.map(showName).join(' or ')}`;
    })
    .join('; ');
}

/** Whether votes of such a subject count. Groups of a user are known only when the user votes. */
export function counts({ kind, name }: Subject, { groups }: ApprovalEntry, template: KubeObject): boolean {
  if (kind === 'User') return groups === undefined;
  if (kind === 'Group') return groups === undefined || groups.includes(name);
  // A ServiceAccount is only in groups of Kubernetes, and no entry may name such a group.
  return groups === undefined && templateSpecOf(template).accessConfig?.approvals?.serviceAccounts === true;
}

/** Entries of `approvals.all` without a holder whose votes count, and how to bind their groups. */
export function missingBindingText(template: KubeObject, holders: readonly Subject[], where: string): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  const missing = all.filter((entry) => !holders.some((holder) => counts(holder, entry, template)));
  if (missing.length === 0) return '';
  // Not groups of Kubernetes: a template that names one is not ready, and the group could approve
  // others.
  const named = missing.flatMap(({ groups = [] }) => groups).filter((name) => !name.startsWith('system:'));
  const groups = named.length > 0 ? new Set(named) : ['GROUP'];
  // The author of the template chooses these names, and an administrator pastes the command.
  const bind = [
    'kubectl create rolebinding',
    shellWord(`${template.metadata.name}-approvers`),
    where,
    '--clusterrole=drawbridge-approver',
    ...[...groups].map((name) => `--group=${shellWord(name)}`),
  ].join(' ');
  const names = missing.map(({ name }) => name).join(' and ');
  const users = missing.every((entry) => entry.groups) ? '; bound users count only if they are in one' : '';
  return `no binding gives the verb approve to a group that counts for ${names}${users}; an administrator can bind it: ${bind}`;
}
