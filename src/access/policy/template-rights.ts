import { execAccessTemplates } from '../../api/access/exec-access-template.ts';
import { podAccessTemplates } from '../../api/access/pod-access-template.ts';
import { quote } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import type { Violation } from './policy.ts';
import type { TemplateInput } from './template-policy.ts';

/** Something that somebody may do in a namespace, as a SubjectAccessReview asks for it. Without a name: to all. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** What every grant gives on its one pod: see it, and exec into it. */
export const grantedVerbs = [
  { resource: 'pods', verbs: ['get', 'list', 'watch'] },
  { resource: 'pods', subresource: 'exec', verbs: ['get', 'create'] },
] as const;

/** The verb on a template that makes somebody an administrator to it: may set `allowPrivilegedPod`. */
export const privilegedVerb = 'allow-privileged';

const templates = { PodAccessTemplate: podAccessTemplates, ExecAccessTemplate: execAccessTemplates } as const;

/** All that a template lets others do, or makes us do for them: nobody may write one who may not do all of it. */
export function rightsHandedOut({ kind, name, spec }: Pick<TemplateInput, 'kind' | 'name' | 'spec'>): Right[] {
  const rights: Right[] = grantedVerbs.flatMap(({ verbs, ...on }) =>
    verbs.map((verb): Right => ({ verb, group: '', ...on })),
  );
  if (kind === 'PodAccessTemplate') rights.push({ verb: 'create', group: '', resource: 'pods' });
  if (own(spec, 'allowPrivilegedPod') === true) {
    const { group, plural } = templates[kind];
    rights.push({ verb: privilegedVerb, group, resource: plural, name });
  }
  return rights;
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
