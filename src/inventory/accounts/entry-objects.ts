import {
  accountName,
  clusterInventories,
  componentLabel,
  entryUidLabel,
  kubeconfigSecretName,
} from '../../api/inventory/names.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta } from '../../api/object.ts';
import { secrets, serviceAccounts } from '../../api/resources.ts';
import { type PolicyRule, roleOf } from '../../grants/role.ts';
import { type RbacSubject, roleBindingOf } from '../../grants/role-binding.ts';
import { own } from '../../kit/json-value.ts';
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

export const isOwnedBy = ({ metadata: { ownerReferences = [] } }: KubeObject, uid: string): boolean =>
  ownerReferences.some((owner) => owner.controller === true && owner.uid === uid);
