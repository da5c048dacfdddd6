import { isDeepStrictEqual } from 'node:util';
import type { Setter } from '../../api/inventory/cluster-inventory.ts';
import {
  accountName,
  clusterInventories,
  componentLabel,
  entryUidLabel,
  kubeconfigSecretName,
} from '../../api/inventory/names.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectMeta, type Resource } from '../../api/object.ts';
import { secrets, serviceAccounts } from '../../api/resources.ts';
import { CodedError } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import type { AccessQuestion, Client } from '../../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.ts';
import { type PolicyRule, type RbacSubject, roleBindingOf, roleOf } from '../../rbac/roles.ts';
import type { Right } from '../../rbac/rule-cover.ts';
import type { EntryRef } from '../entry.ts';

/**
 * What components may be given on an entry: to work on it; to read the kubeconfig of the cluster; to write that; to read the Secret of
 * a supplied one.
 */
export const grants = ['entry', 'kubeconfig', 'kubeconfig-producer', 'supplied'] as const;
export type Grant = (typeof grants)[number];

/** Name of the Role of a grant, and of the RoleBinding to it. */
export const grantName = (entryUid: string, grant: Grant): string => `inventory-${entryUid}-${grant}`;

/** The rules of a grant; `supplied` names the Secret that was supplied. */
export function rulesOf({ name, uid }: EntryRef, grant: Grant, supplied: string): readonly PolicyRule[] {
  const inventory = { apiGroups: [clusterInventories.group], resourceNames: [name] as [string] };
  const status = `${clusterInventories.plural}/status`;
  switch (grant) {
    case 'entry':
      return [
        { ...inventory, resources: [clusterInventories.plural], verbs: ['get'] },
        { ...inventory, resources: [status], verbs: ['get', 'patch'] },
      ];
    case 'kubeconfig':
      return [secretRule(kubeconfigSecretName(uid), ['get'])];
    case 'kubeconfig-producer':
      return [secretRule(kubeconfigSecretName(uid), ['get', 'patch'])];
    case 'supplied':
      return [secretRule(supplied, ['get'])];
  }
}

const secretRule = (name: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: [''],
  resources: ['secrets'],
  resourceNames: [name],
  verbs,
});

export const roleFor = (ref: EntryRef, grant: Grant, supplied: string): KubeObject =>
  roleOf(metadata(ref, grantName(ref.uid, grant)), rulesOf(ref, grant, supplied));

export const bindingFor = (ref: EntryRef, grant: Grant, subjects: readonly RbacSubject[]): KubeObject =>
  roleBindingOf(metadata(ref, grantName(ref.uid, grant)), grantName(ref.uid, grant), subjects);

export const subjectOf = ({ namespace, uid }: EntryRef, component: string): RbacSubject => ({
  kind: 'ServiceAccount',
  name: accountName(uid, component),
  namespace,
});

/** Of the subjects of a RoleBinding those that are accounts of this entry; whoever else is in it has no business there. */
export function accountsAmong(subjects: unknown, { namespace, uid }: EntryRef): RbacSubject[] {
  const prefix = accountName(uid, '');
  return (Array.isArray(subjects) ? subjects : []).flatMap((subject: unknown): RbacSubject[] => {
    const [kind, name] = [own(subject, 'kind'), own(subject, 'name')];
    const isAccount = kind === 'ServiceAccount' && own(subject, 'namespace') === namespace;
    return isAccount && typeof name === 'string' && name.startsWith(prefix) ? [{ kind, name, namespace }] : [];
  });
}

/** It mounts nowhere: its tokens are asked for one by one. */
export const accountFor = (ref: EntryRef, component: string): KubeObject => ({
  apiVersion: apiVersionOf(serviceAccounts),
  kind: serviceAccounts.kind,
  metadata: metadata(ref, accountName(ref.uid, component), { [componentLabel]: component }),
  automountServiceAccountToken: false,
});

export const kubeconfigSecretFor = (ref: EntryRef): KubeObject => ({
  apiVersion: apiVersionOf(secrets),
  kind: secrets.kind,
  metadata: metadata(ref, kubeconfigSecretName(ref.uid)),
  type: 'Opaque',
});

/** Owned by the entry, so that nothing outlives it. */
function metadata(ref: EntryRef, name: string, labels: Readonly<Record<string, string>> = {}): ObjectMeta {
  return {
    name,
    namespace: ref.namespace,
    labels: { ...labels, [entryUidLabel]: ref.uid },
    ownerReferences: [
      {
        apiVersion: apiVersionOf(clusterInventories),
        kind: clusterInventories.kind,
        name: ref.name,
        uid: ref.uid,
        controller: true,
      },
    ],
  };
}

const isOwnedBy = ({ metadata: { ownerReferences = [] } }: KubeObject, uid: string): boolean =>
  ownerReferences.some((owner) => owner.controller === true && owner.uid === uid);

/** Tries of a write that others keep getting in the way of. */
const tries = 5;

/** A field of an object, and what it has to be, given what was found there. */
interface OwnField {
  readonly name: string;
  readonly wanted: (found: unknown) => unknown;
}

/**
 * Sees to it that `object` exists, belongs to the entry `uid`, and that its field `own` is what `wanted` makes of what is there.
 * Rejects with CodedError `NameTaken` for an object of somebody else, and for one that nobody can make what it has to be; both stay as
 * they are.
 */
export async function ensureOwned(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field?: OwnField,
): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      await client.create(resource, object, { signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    try {
      await correct(client, resource, object, uid, signal, field);
      return;
    } catch (error) {
      // Gone or changed between the two calls.
      if (tried === tries || !(isNotFound(error) || isConflict(error))) throw error;
    }
  }
}

async function correct(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field: OwnField | undefined,
): Promise<void> {
  const found = await client.get(resource, object.metadata, { signal });
  if (!isOwnedBy(found, uid)) {
    throw new CodedError(
      'NameTaken',
      `${resource.kind} ${keyOf(object.metadata)} exists and does not belong to this entry; delete it`,
    );
  }
  // Whoever may make such an object can say whose it is as well.
  const fixed = found['immutable'] === true ? 'immutable' : 'roleRef';
  if (fixed === 'immutable' || !isDeepStrictEqual(found[fixed], object[fixed])) {
    throw new CodedError(
      'NameTaken',
      `${resource.kind} ${keyOf(object.metadata)} exists with another \`${fixed}\`, which cannot be changed; delete it`,
    );
  }
  if (!field) return;
  const wanted = field.wanted(found[field.name]);
  if (isDeepStrictEqual(wanted, found[field.name])) return;
  const { resourceVersion } = found.metadata;
  const patch = { metadata: { resourceVersion }, [field.name]: wanted };
  await client.mergePatch(resource, object.metadata, patch, { signal });
}

/** The user name of a component's account, as the API server has it. */
const accountUser = ({ namespace, uid }: EntryRef, component: string): string =>
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
