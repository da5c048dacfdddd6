import type { Setter } from '../../api/inventory/cluster-inventory.ts';
import { accountName } from '../../api/inventory/names.ts';
import type { Right } from '../../grants/rule-cover.ts';
import type { AccessQuestion, Client } from '../../kube/client.ts';
import type { EntryRef } from '../entry.ts';

/** The user name of a component's account, as the API server has it. */
export const accountUser = ({ namespace, uid }: EntryRef, component: string): string =>
  `system:serviceaccount:${namespace}:${accountName(uid, component)}`;

/** Whether the account of a component has a right in the namespace of the entry. */
export function accountQuestion(ref: EntryRef, component: string, right: Right): AccessQuestion {
  const [resource = '', subresource] = right.resource.split('/');
  return {
    user: accountUser(ref, component),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${ref.namespace}`, 'system:authenticated'],
    namespace: ref.namespace,
    verb: right.verb,
    group: right.group,
    resource,
    ...(subresource === undefined ? {} : { subresource }),
    ...(right.name === undefined ? {} : { name: right.name }),
  };
}

/** Whether whoever named a Secret may read it, with the groups that they had when they did. */
export function mayRead(
  client: Client,
  { username, uid, groups, extra }: Setter,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  const question: AccessQuestion = {
    user: username,
    uid,
    groups,
    ...(extra === undefined ? {} : { extra }),
    namespace,
    verb: 'get',
    group: '',
    resource: 'secrets',
    name,
  };
  return client.isAllowed(question, { signal });
}
