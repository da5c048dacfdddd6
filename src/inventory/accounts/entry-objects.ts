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
 * Roles of components on an entry. `entry`: read the entry and write its status. `kubeconfig`: read the Secret with the kubeconfig.
 * `kubeconfig-producer`: read and write that Secret. `supplied`: read the user's Secret in `spec.kubeconfigSecretRef`.
 */
export const entryRoles = ['entry', 'kubeconfig', 'kubeconfig-producer', 'supplied'] as const;
export type EntryRole = (typeof entryRoles)[number];

/** Name of the Role and of its RoleBinding. */
export const entryRoleName = (entryUid: string, role: EntryRole): string => `inventory-${entryUid}-${role}`;

/** The rules of a role. `suppliedSecret`: name of the user's Secret; only the role `supplied` uses it; for other roles, pass `''`. */
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

/** The Role object of a role. */
export const roleFor = (ref: EntryRef, role: EntryRole, suppliedSecret: string): KubeObject =>
  roleOf(metadata(ref, entryRoleName(ref.uid, role)), rulesOf(ref, role, suppliedSecret));

/** The RoleBinding object of a role. */
export const roleBindingFor = (ref: EntryRef, role: EntryRole, subjects: readonly RbacSubject[]): KubeObject =>
  roleBindingOf(metadata(ref, entryRoleName(ref.uid, role)), entryRoleName(ref.uid, role), subjects);

/** The account of a component as an RBAC subject. */
export const subjectOf = ({ namespace, uid }: EntryRef, component: string): RbacSubject => ({
  kind: 'ServiceAccount',
  name: accountName(uid, component),
  namespace,
});

/** The subjects of a RoleBinding that are accounts of this entry; all others are dropped. */
export function accountsAmong(subjects: unknown, { namespace, uid }: EntryRef): RbacSubject[] {
  const prefix = accountName(uid, '');
  return (Array.isArray(subjects) ? subjects : []).flatMap((subject: unknown): RbacSubject[] => {
    const [kind, name] = [own(subject, 'kind'), own(subject, 'name')];
    const isAccount = kind === 'ServiceAccount' && own(subject, 'namespace') === namespace;
    return isAccount && typeof name === 'string' && name.startsWith(prefix) ? [{ kind, name, namespace }] : [];
  });
}

/** The ServiceAccount of a component for one entry. The server requests its tokens, so pods need not mount any. */
export const accountFor = (ref: EntryRef, component: string): KubeObject => ({
  apiVersion: apiVersionOf(serviceAccounts),
  kind: serviceAccounts.kind,
  metadata: metadata(ref, accountName(ref.uid, component), { [componentLabel]: component }),
  automountServiceAccountToken: false,
});

/** The empty Secret for the kubeconfig of the cluster. */
export const kubeconfigSecretFor = (ref: EntryRef): KubeObject => ({
  apiVersion: apiVersionOf(secrets),
  kind: secrets.kind,
  metadata: metadata(ref, kubeconfigSecretName(ref.uid)),
  type: 'Opaque',
});

/** Metadata with the entry as owner, so garbage collection deletes the object after the entry. */
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

/** Maximum number of attempts of a conflicting write. */
const maxAttempts = 5;

/** A field of an object, and a function that computes its desired value from the current one. */
interface OwnedField {
  readonly name: string;
  readonly desired: (current: unknown) => unknown;
}

/**
 * Creates `object`, which must already contain the desired value of `field`. If the object exists, corrects `field`; without `field`,
 * changes nothing. Does not adopt an object without a controller.
 *
 * Rejects with CodedError `NameTaken`, without a change, if the existing object is immutable, has another `roleRef`, or is not controlled
 * by the entry with UID `uid`. Rejects with the last ApiError after five attempts that found the object deleted or changed meanwhile. Also
 * rejects as the client does.
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
      // The object was deleted or changed between the two calls.
      if (attempt === maxAttempts || !(isNotFound(error) || isConflict(error))) throw error;
    }
  }
}

/** Checks that the server may use the existing object, and corrects `field`. Rejects as `ensureOwned` does. */
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
  // Another client may have created the object with this owner reference, and the server cannot correct immutable fields.
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

/** User name of a component's ServiceAccount. */
const accountUser = ({ namespace, uid }: EntryRef, component: string): string =>
  `system:serviceaccount:${namespace}:${accountName(uid, component)}`;

/** The attributes of a SubjectAccessReview for a permission of the component's ServiceAccount in the namespace of the entry. */
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
 * Whether the user who set `kubeconfigSecretRef` may get that Secret now, by a SubjectAccessReview. The review uses the groups and the
 * extra fields that the webhook recorded when the user set the reference. Rejects as the client does.
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
