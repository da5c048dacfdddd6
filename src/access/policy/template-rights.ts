import type { TemplateRule } from '../../api/access/grant.ts';
import { accessOfTemplate, type TemplateSpec } from '../../api/access/kinds.ts';
import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { rightsOf } from '../../rbac/rule-cover.ts';
import { rulesOf } from './granted-rules.ts';
import type { Violation } from './policy.ts';
import type { Caller } from './request-policy.ts';
import type { TemplateInput } from './template-policy.ts';

/** Something that somebody may do in a namespace, as a SubjectAccessReview asks for it. Without a name: to all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** The verb on a template that makes somebody an administrator to it: may set `allowPrivilegedPod`. */
const privilegedVerb = 'allow-privileged';

export const handsOutPrivilege = (spec: TemplateSpec): boolean => own(spec, 'allowPrivilegedPod') === true;

/** A template, as far as it says what it gives. */
export type GrantingTemplate = Pick<TemplateInput, 'kind' | 'name' | 'spec'>;

/** All that a template lets others do, or makes us do for them: nobody may write one who may not do all of it. */
export function rightsHandedOut(template: GrantingTemplate): Right[] {
  return [...rightsOnAllPods(rulesOf(template.spec.accessConfig)), ...rightsToCreate(template)];
}

/**
 * What stands for all that a template gives, to be asked of somebody whom no group lets in: exec for what every grant gives, and what
 * this template adds.
 */
export function rightsToHold(template: GrantingTemplate): Right[] {
  const exec = { apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] };
  return [...rightsOnAllPods([exec, ...(template.spec.accessConfig.rules ?? [])]), ...rightsToCreate(template)];
}

/** What it takes to make by hand what we make for a template. */
function rightsToCreate({ kind, name, spec }: GrantingTemplate): Right[] {
  const rights: Right[] = [];
  const { createsPod, template } = accessOfTemplate(kind);
  if (createsPod) rights.push({ verb: 'create', group: '', resource: 'pods' });
  if (handsOutPrivilege(spec)) {
    const { group, plural } = template.resource;
    rights.push({ verb: privilegedVerb, group, resource: plural, name });
  }
  return rights;
}

/** The rights of rules on all pods of a namespace, each once: before there is a grant nobody knows on which. */
function rightsOnAllPods(rules: readonly TemplateRule[]): Right[] {
  const rights = rightsOf(rules).map(({ verb, group, resource: path }) => {
    const [resource = '', subresource] = path.split('/', 2);
    return { verb, group, resource, ...(subresource === undefined ? {} : { subresource }) };
  });
  return [...new Map(rights.map((right) => [describeRight(right), right])).values()];
}

/** The mutating webhook writes the author; without its work the controller would have nobody to ask about. */
export function authorIsNotCaller(
  caller: Pick<Caller, 'username' | 'groups'>,
  spec: TemplateSpec,
): Violation | undefined {
  const { author } = spec;
  const groups = new Set(caller.groups);
  if (author?.username === caller.username && author.groups.every((group) => groups.has(group))) return undefined;
  return {
    code: 'MissingIdentity',
    message:
      `spec.author must name ${quote(caller.username)}, who writes the template, with no foreign groups, and names ` +
      `${author ? quote(author.username) : 'nobody'}; the mutating webhook of drawbridge sets it: check that it is installed`,
    field: 'spec.author',
    status: 403,
  };
}

/** The violation of an author who lacks some of the rights that the template hands out. */
export function authorLacks(username: string, namespace: string, lacking: readonly Right[]): Violation | undefined {
  if (lacking.length === 0) return undefined;
  return {
    code: 'AuthorLacksRights',
    message:
      `a template hands out only what its author may do, and ${quote(username)} may not ` +
      `${lacking.map(describeRight).join(', ')} in namespace ${quote(namespace)}; let somebody apply it who may`,
    status: 403,
  };
}

function describeRight({ verb, group, resource, subresource, name }: Right): string {
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `${verb} ${group === '' ? what : `${what}.${group}`}${name === undefined ? '' : ` ${quote(name)}`}`;
}
