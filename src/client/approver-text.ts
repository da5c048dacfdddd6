import { showName } from '../access/policy/names.ts';
import type { ApprovalEntry } from '../api/access/access-config.ts';
import type { TemplateSpec } from '../api/access/kinds.ts';
import type { KubeObject } from '../api/object.ts';
import { shellWord } from '../kit/shell-word.ts';
import type { Subject } from './rbac-view.ts';

/** The spec of a template. The API server has checked its schema, so the client does not check it again. */
export const templateSpecOf = ({ spec }: KubeObject): Partial<TemplateSpec> => (spec ?? {}) as Partial<TemplateSpec>;

/** Whether grants through a template permit exec into their pod. */
export function permitsExec(template: KubeObject): boolean {
  const { exec, rules = [] } = templateSpecOf(template).accessConfig ?? {};
  return exec !== false || rules.some(({ resources }) => resources.includes('pods/exec'));
}

/**
 * The approvals that the template requires: `peer: 1 of group devs; security: 2 of groups secops or sre`, or, for an entry without groups,
 * `any: 1 with the verb approve on TEMPLATE`. Empty if it requires none.
 */
export function approversText(template: KubeObject): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  return all
    .map(({ name, count = 1, groups = [] }) => {
      if (groups.length === 0) return `${name}: ${count} with the verb approve on ${template.metadata.name}`;
      return `${name}: ${count} of group${groups.length === 1 ? '' : 's'} ${groups.map(showName).join(' or ')}`;
    })
    .join('; ');
}

/**
 * Whether the votes of a subject that holds the verb approve count for an entry of `approvals.all`. False for a user if the entry has groups,
 * because the groups of a user are known only when the user votes.
 */
export function counts({ kind, name }: Subject, { groups }: ApprovalEntry, template: KubeObject): boolean {
  if (kind === 'User') return groups === undefined;
  if (kind === 'Group') return groups === undefined || groups.includes(name);
  // A ServiceAccount is only in groups of Kubernetes, and no entry may name such a group.
  return groups === undefined && templateSpecOf(template).accessConfig?.approvals?.serviceAccounts === true;
}

/**
 * Names the entries of `approvals.all` without a holder whose votes count, and the command that binds their groups: `no binding gives …`.
 * Empty if each entry has one. `holders`: the subjects that hold the verb approve on the template. `kubectlFlags`: the flags that select the
 * cluster and the namespace of the template.
 */
export function missingBindingText(
  template: KubeObject,
  holders: readonly Subject[],
  kubectlFlags: readonly string[],
): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  const missing = all.filter((entry) => !holders.some((holder) => counts(holder, entry, template)));
  if (missing.length === 0) return '';
  // Do not bind groups of Kubernetes: a template that names one is not ready, and the group could then approve through other templates.
  const named = missing.flatMap(({ groups = [] }) => groups).filter((name) => !name.startsWith('system:'));
  const groups = named.length > 0 ? new Set(named) : ['GROUP'];
  // The author of the template chooses the names of groups, and an administrator pastes the command, so each name is quoted.
  const bind = [
    'kubectl create rolebinding',
    shellWord(`${template.metadata.name}-approvers`),
    ...kubectlFlags.map(shellWord),
    '--clusterrole=drawbridge-approver',
    ...[...groups].map((name) => `--group=${shellWord(name)}`),
  ].join(' ');
  const hasUsers = holders.some(({ kind }) => kind === 'User');
  const others = missing.some((entry) => entry.groups !== undefined)
    ? `; ${hasUsers ? 'bound users and ' : ''}members of other groups count only if they are also in such a group`
    : '';
  const names = missing.map(({ name }) => name).join(' and ');
  return `no binding gives the verb approve to ${hasUsers ? '' : 'a user, or to '}a group that counts for ${names}${others}; an administrator can bind it: ${bind}`;
}
