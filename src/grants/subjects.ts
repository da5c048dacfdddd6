import type { AccessConfig } from '../api/access/access-config.ts';
import type { GrantSubject } from '../api/access/grant.ts';
import type { Requester } from '../api/access/request-spec.ts';
import { groupSubject, type RbacSubject, userSubject } from './role-binding.ts';

/** Whom a grant lets in: the requester, or by `grantTo: AllowedGroups` every allowed group (the requester when there is none). Never empty. */
export function subjectsOf(
  config: Pick<AccessConfig, 'allowedGroups' | 'grantTo'>,
  requester: Pick<Requester, 'username'>,
): GrantSubject[] {
  if (config.grantTo === 'AllowedGroups' && config.allowedGroups.length > 0) {
    return config.allowedGroups.map((name) => ({ kind: 'Group', name }));
  }
  return [{ kind: 'User', name: requester.username }];
}

/** A grant's subject as a RoleBinding wants it. */
export function toRbacSubject(subject: GrantSubject): RbacSubject {
  return subject.kind === 'User' ? userSubject(subject.name) : groupSubject(subject.name);
}
