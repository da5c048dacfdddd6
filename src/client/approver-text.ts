import type { TemplateSpec } from '../api/access/kinds.ts';
import type { KubeObject } from '../api/object.ts';

/** The spec of a template. The API server has checked its schema, so the client does not check it again. */
export const templateSpecOf = ({ spec }: KubeObject): Partial<TemplateSpec> => (spec ?? {}) as Partial<TemplateSpec>;

/** Whether grants through a template permit exec into their pod. */
export function permitsExec(template: KubeObject): boolean {
  const { exec, rules = [] } = templateSpecOf(template).accessConfig ?? {};
  return exec !== false || rules.some(({ resources }) => resources.includes('pods/exec'));
}

/** Whose approvals the template requires: `peer: 1 of group devs; security: 2 of groups secops or sre`. Empty if it requires none. */
export function approversText(template: KubeObject): string {
  const all = templateSpecOf(template).accessConfig?.approvals?.all ?? [];
  return all
    .map(({ name, count = 1, groups = [] }) => {
      if (groups.length === 0) return `${name}: ${count} with the verb approve on ${template.metadata.name}`;
      return `${name}: ${count} of group${groups.length === 1 ? '' : 's'} ${groups.join(' or ')}`;
    })
    .join('; ');
}
