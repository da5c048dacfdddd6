import { isDeepStrictEqual } from 'node:util';
import type { KubeconfigSetter } from '../../api/inventory/cluster-inventory.ts';
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
 * `entry`: read the entry, write its status. `kubeconfig`: read that Secret; `kubeconfig-producer`:
 * also write it. `supplied`: read the user's Secret in `spec.kubeconfigSecretRef`.
 */
export const entryRoles = ['entry', 'kubeconfig', 'kubeconfig-producer', 'supplied'] as const;
export type EntryRole = (typeof entryRoles)[number];

export const entryRoleName = (entryUid: string, role: EntryRole): string => `inventory-${entryUid}-${role}`;

/** `suppliedSecret`: the user's Secret, for the role `supplied`; `''` for the others. */
export function rulesOf({ name, uid }: EntryRef, role: EntryRole, suppliedSecret: string): readonly PolicyRule[] {
  const inventory = { apiGroups: [clusterInventories.group], resourceNames: [name] as [string] };
  const status = `${clusterInventories.plural}/status`;
  switch (role) {
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
      return [secretRule(suppliedSecret, ['get'])];
  }
}

const secretRule = (name: string, verbs: readonly string[]): PolicyRule => ({
  apiGroups: [''],
  resources: ['secrets'],
  resourceNames: [name],
  verbs,
});

export const roleFor = (ref: EntryRef, role: EntryRole, suppliedSecret: string): KubeObject =>
  roleOf(metadata(ref, entryRoleName(ref.uid, role)), rulesOf(ref, role, suppliedSecret));

export const roleBindingFor = (ref: EntryRef, role: EntryRole, subjects: readonly RbacSubject[]): KubeObject =>
  roleBindingOf(metadata(ref, entryRoleName(ref.uid, role)), entryRoleName(ref.uid, role), subjects);

export const subjectOf = ({ namespace, uid }: EntryRef, component: string): RbacSubject => ({
  kind: 'ServiceAccount',
  name: accountName(uid, component),
  namespace,
});

/** Drops subjects that are not accounts of this entry. */
export function accountsAmong(subjects: unknown, { namespace, uid }: EntryRef): RbacSubject[] {
  const prefix = accountName(uid, '');
  return (Array.isArray(subjects) ? subjects : []).flatMap((subject: unknown): RbacSubject[] => {
    const [kind, name] = [own(subject, 'kind'), own(subject, 'name')];
    const isAccount = kind === 'ServiceAccount' && own(subject, 'namespace') === namespace;
    return isAccount && typeof name === 'string' && name.startsWith(prefix) ? [{ kind, name, namespace }] : [];
  });
}

/** The server requests its tokens, so pods need not mount any. */
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

/** The entry is the owner, so garbage collection deletes the object after it. */
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

/** Of a conflicting write. */
const maxAttempts = 5;

/** `desired` computes the value from the current one. */
interface OwnedField {
  readonly name: string;
  readonly desired: (current: unknown) => unknown;
}

/**
 * Creates `object`, or corrects `field` of an existing one; without `field`, changes nothing.
 * Rejects with `NameTaken` if the existing object is immutable, has another `roleRef`, or is not
 * controlled by the entry with this `uid`; with the last ApiError after five conflicts; and as the
 * client does.
 */
export async function ensureOwned(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field?: OwnedField,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.create(resource, object, { signal });
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    try {
      await correctExisting(client, resource, object, uid, signal, field);
      return;
    } catch (error) {
      // Deleted or changed between the two calls.
      if (attempt === maxAttempts || !(isNotFound(error) || isConflict(error))) throw error;
    }
  }
}

async function correctExisting(
  client: Client,
  resource: Resource,
  object: KubeObject,
  uid: string,
  signal: AbortSignal,
  field: OwnedField | undefined,
): Promise<void> {
  const found = await client.get(resource, object.metadata, { signal });
  if (!isOwnedBy(found, uid)) {
    const entry = object.metadata.ownerReferences?.find(({ controller }) => controller === true)?.name ?? '';
    throw nameTaken(
      resource,
      object,
      `but its controller is not ClusterInventory ${entry} (uid ${uid}); if nothing else uses it, delete it`,
    );
  }
  // Another client may have created it with this owner reference.
  const isImmutable = found['immutable'] === true;
  if (isImmutable || !isDeepStrictEqual(found['roleRef'], object['roleRef'])) {
    const problem = isImmutable ? 'is immutable' : 'has another roleRef, which cannot change';
    throw nameTaken(resource, object, `and ${problem}; delete it`);
  }
  if (!field) return;
  const desired = field.desired(found[field.name]);
  if (isDeepStrictEqual(desired, found[field.name])) return;
  const { resourceVersion } = found.metadata;
  const patch = { metadata: { resourceVersion }, [field.name]: desired };
  await client.mergePatch(resource, object.metadata, patch, { signal });
}

function nameTaken({ kind }: Resource, { metadata }: KubeObject, problemAndRemedy: string): CodedError {
  const command = `kubectl delete ${kind.toLowerCase()} ${metadata.name} -n ${metadata.namespace}`;
  return new CodedError('NameTaken', `${kind} ${keyOf(metadata)} exists ${problemAndRemedy}: ${command}`);
}

const accountUser = ({ namespace, uid }: EntryRef, component: string): string =>
  `system:serviceaccount:${namespace}:${accountName(uid, component)}`;

/** A permission of the component's ServiceAccount in the namespace of the entry. */
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

/**
 * Whether the user who set `kubeconfigSecretRef` may get that Secret now, with the groups and extra
 * fields that the webhook recorded then. Rejects as the client does.
 */
export function setterMayReadSecret(
  client: Client,
  { username, uid, groups, extra }: KubeconfigSetter,
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
