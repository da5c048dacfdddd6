import type { TemplateRule } from '../../api/access/grant.ts';
import { accessOfTemplate, type TemplateSpec } from '../../api/access/kinds.ts';
import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { rightsOf } from '../../rbac/rule-cover.ts';
import { addedRules, rulesOf } from './granted-rules.ts';
import type { Violation } from './policy.ts';
import type { Caller } from './request-policy.ts';
import type { TemplateInput } from './template-policy.ts';

/** In a namespace, as a SubjectAccessReview checks it. Without a name, for all objects. */
export interface Permission {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** On a template: allows its author to set `allowPrivilegedPod`. */
const privilegedVerb = 'allow-privileged';

export const handsOutPrivilege = (spec: TemplateSpec): boolean => own(spec, 'allowPrivilegedPod') === true;

export type GrantingTemplate = Pick<TemplateInput, 'kind' | 'name' | 'spec'>;

/** The author of the template must hold all of these. */
export function permissionsHandedOut(template: GrantingTemplate): Permission[] {
  return [...permissionsOnAllPods(rulesOf(template.spec.accessConfig)), ...permissionsToCreate(template)];
}

/** With these, a caller needs no allowed group, except in an emergency. */
export function permissionsToHold(template: GrantingTemplate): Permission[] {
  const { accessConfig } = template.spec;
  const execRule = { apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] };
  const rules = accessConfig.exec === false ? rulesOf(accessConfig) : [execRule, ...addedRules(accessConfig)];
  return [...permissionsOnAllPods(rules), ...permissionsToCreate(template)];
}

/** To create the Pod of a grant, and `allow-privileged` if the template sets that. */
function permissionsToCreate({ kind, name, spec }: GrantingTemplate): Permission[] {
  const permissions: Permission[] = [];
  const { createsPod, template } = accessOfTemplate(kind);
  if (createsPod) permissions.push({ verb: 'create', group: '', resource: 'pods' });
  if (handsOutPrivilege(spec)) {
    const { group, plural } = template.resource;
    permissions.push({ verb: privilegedVerb, group, resource: plural, name });
  }
  return permissions;
}

/** On all pods of a namespace, because the granted pod is not known yet. */
function permissionsOnAllPods(rules: readonly TemplateRule[]): Permission[] {
  const permissions = rightsOf(rules).map(({ verb, group, resource: path }) => {
    const [resource = '', subresource] = path.split('/', 2);
    return { verb, group, resource, ...(subresource === undefined ? {} : { subresource }) };
  });
  return [...new Map(permissions.map((permission) => [describePermission(permission), permission])).values()];
}

/** `spec.author`, which the mutating webhook writes, is not the caller, or has a foreign group. */
export function authorCallerViolation(
  caller: Pick<Caller, 'username' | 'groups'>,
  spec: TemplateSpec,
): Violation | undefined {
  const { author } = spec;
  const groups = new Set(caller.groups);
  const foreign = author?.groups.find((group) => !groups.has(group));
  const isCaller = author?.username === caller.username;
  if (isCaller && foreign === undefined) return undefined;
  const found = isCaller ? `group ${quote(foreign ?? '')}` : author ? quote(author.username) : 'no user';
  return {
    code: 'MissingIdentity',
    message:
      `spec.author names ${found}; it must name ${quote(caller.username)}, the caller, and only groups of the caller. ` +
      'The mutating webhook of drawbridge sets the field: check that the webhook is registered',
    field: 'spec.author',
    status: 403,
  };
}

/** `remedy`: what a user who holds the permissions must do, as an infinitive. */
export function authorPermissionsViolation(
  username: string,
  namespace: string,
  lacking: readonly Permission[],
  remedy: string,
): Violation | undefined {
  if (lacking.length === 0) return undefined;
  return {
    code: 'AuthorLacksRights',
    message:
      `author ${quote(username)} may not ${lacking.map(describePermission).join(', ')} in namespace ${quote(namespace)}; ` +
      `a template hands out only what its author may do: ask someone who holds all of its permissions ${remedy}`,
    status: 403,
  };
}

function describePermission({ verb, group, resource, subresource, name }: Permission): string {
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `${verb} ${group === '' ? what : `${what}.${group}`}${name === undefined ? '' : ` ${quote(name)}`}`;
}
