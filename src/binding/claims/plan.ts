import type { Owner } from '../../api/binding/names.ts';
import type { Side } from '../sync-engine/syncer.ts';
import type { ClaimedView } from './claimed-view.ts';
import { type CopyIdentity, isInSync, mustBeReplaced } from './copy.ts';

/** The current state of one key. `consumer` and `provider`: the object of that side; undefined if there is none. */
export interface ClaimFacts {
  readonly consumer: ClaimedView | undefined;
  readonly provider: ClaimedView | undefined;
  /** Whether a claim selects the current object of that side. */
  readonly claimed: Readonly<Record<Side, boolean>>;
  readonly consumerNamespace: string;
  /** uid that identifies the consumer cluster; undefined while it is not known. */
  readonly consumerCluster: string | undefined;
  /** Whether another konnector reports to the same ClusterBinding. */
  readonly hasConflictingKonnector: boolean;
  /** Whether the consumer namespace exists and is not being deleted. */
  readonly isNamespaceActive: boolean;
  /**
   * Whether the server may create a copy in the consumer. It may if the namespace has a bound object, if a bound object refers to this
   * object in this namespace, or if the owner label of the namespace names the provider.
   */
  readonly mayCopyToConsumer: boolean;
  readonly serviceNamespace: ServiceNamespace;
  /** uid that identifies this provider; undefined while it is not known. */
  readonly providerIdentity: string | undefined;
  /** The last known deletion under the key on each side. */
  readonly deleted: Readonly<Record<Side, KnownDeletion | undefined>>;
}

/** An object that left the store. */
export interface KnownDeletion {
  readonly uid: string;
  /** False if no watch event showed the deletion, for example because the watch of the namespace ended. The object may still exist. */
  readonly wasObserved: boolean;
}

/**
 * The service namespace of the consumer namespace. `none`: no APIServiceNamespace requests it. `pending`: the provider has not set its
 * name, or the APIServiceNamespace is being deleted.
 */
export type ServiceNamespace =
  | { readonly kind: 'none' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'ready'; readonly name: string };

/** A write that a plan requests. */
export type ClaimAction =
  /** Request a service namespace. Further actions are planned once it exists. */
  | { readonly kind: 'request-namespace' }
  /** Set the owner label on the original. */
  | { readonly kind: 'label'; readonly side: Side }
  /** Create or update the object of `side` as a copy of the other side's object. */
  | { readonly kind: 'create' | 'update'; readonly side: Side; readonly identity: CopyIdentity }
  /** Delete the object of `side` if it has this uid. */
  | { readonly kind: 'delete'; readonly side: Side; readonly uid: string; readonly reason: DeleteReason };

/** Why a copy is deleted. */
export type DeleteReason =
  /** The deletion of the original was observed, or the original is being deleted. */
  | 'deleted'
  /** The original does not exist, and its deletion was not observed. */
  | 'inferred'
  /** The API server would reject the update of the copy. The server deletes the copy and creates it again. */
  | 'replaced'
  /** The binding is being deleted. */
  | 'unbound';

/** The plan for one key. */
export interface ClaimPlan {
  /** The actions, in order. Each runs only if all actions before it succeeded. */
  readonly actions: readonly ClaimAction[];
  /** Why the server cannot sync the object and, if the user can correct it, what to do. */
  readonly problem?: string;
  /** The event that will enqueue the key again. */
  readonly waitsFor?: string;
  /** Requeue delay, milliseconds. */
  readonly requeueAfterMs?: number;
}

/** Requeue delay while the uid of the provider is not known, milliseconds. */
const identityRecheckMs = 30_000;
/** Requeue delay for a copy that another konnector may own, milliseconds. */
const conflictRecheckMs = 60_000;

const nothing: ClaimPlan = { actions: [] };

/**
 * Plans one key. Creates and updates need a selector that selects the original, and they go from the owner's side to the other side.
 * `label` writes the original itself. The delete of an orphaned copy needs no selector, because a copy that is no longer selected must still
 * be deleted with its original. Instead, the copy must have origin annotations that match this consumer or provider. A delete that replaces
 * a copy needs a selector, as an update does.
 */
export function planClaim(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed } = facts;
  if (consumer && isOfAnotherProvider(consumer, facts)) {
    if (facts.providerIdentity === undefined) return { actions: [], requeueAfterMs: identityRecheckMs };
    return provider && claimed.provider && provider.owner !== 'consumer'
      ? {
          actions: [],
          problem:
            'this cluster already has a copy under this name, from another provider or another namespace of this provider; rename one of the two originals, or delete the copy if its original no longer exists',
        }
      : nothing;
  }
  const owner = ownerOf(facts);
  if (owner === 'consumer') return planConsumerOwned(facts);
  if (owner === 'provider') return planProviderOwned(facts);
  const isWanted = claimed.consumer || claimed.provider;
  if (owner === 'disputed' && isWanted) {
    return {
      actions: [],
      problem:
        'the owner labels of the two objects differ; delete the copy, and set the label kube-bind.io/owner of the original to its own side: consumer for yours, provider for that of the provider',
    };
  }
  return owner === 'unknown' && isWanted
    ? {
        actions: [],
        problem:
          "it exists on both sides without an owner label; delete one of the two, or label the one to overwrite: yours with kube-bind.io/owner=provider, or the provider's with kube-bind.io/owner=consumer",
      }
    : nothing;
}

/**
 * The owner. A single object without an owner label belongs to the side that it is on. `disputed`: the owner labels of the two objects
 * differ. `unknown`: neither of the two objects has an owner label. Undefined if there is no object.
 */
function ownerOf({ consumer, provider }: ClaimFacts): Owner | 'unknown' | 'disputed' | undefined {
  if (!provider) return consumer && (consumer.owner ?? 'consumer');
  if (!consumer) return provider.owner ?? 'provider';
  if (provider.owner && consumer.owner && provider.owner !== consumer.owner) return 'disputed';
  return provider.owner ?? consumer.owner ?? 'unknown';
}

/**
 * Whether a consumer object is a copy from another provider, or from another namespace of this provider. Two providers may have namespaces
 * of the same name. While the uid of this provider is not known, the uid of the original therefore decides.
 */
function isOfAnotherProvider(
  { owner, origin }: ClaimedView,
  { provider, deleted, serviceNamespace, providerIdentity }: ClaimFacts,
): boolean {
  if (owner !== 'provider') return false;
  if (origin.providerIdentity !== undefined && origin.providerIdentity !== providerIdentity) {
    return providerIdentity !== undefined || origin.providerUid !== (provider ?? deleted.provider)?.uid;
  }
  if (serviceNamespace.kind !== 'ready' || origin.providerNamespace === undefined) return false;
  return origin.providerNamespace !== serviceNamespace.name;
}

/** Plans an object that the consumer owns: its copy in the provider. */
function planConsumerOwned(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed, serviceNamespace } = facts;
  if (!consumer) return provider ? planProviderCopyDelete(provider, facts) : nothing;
  if (!claimed.consumer || consumer.deleting) return nothing;
  if (serviceNamespace.kind === 'none') {
    return facts.isNamespaceActive
      ? { actions: [{ kind: 'request-namespace' }], waitsFor: 'the service namespace' }
      : nothing;
  }
  if (serviceNamespace.kind === 'pending') return { actions: [], waitsFor: 'the service namespace' };
  if (provider && !isCopyOf(consumer, provider, facts)) {
    const mismatch = provider.owner
      ? 'belongs to another consumer, or to an earlier object of this name'
      : 'is not a copy of it';
    const problem = `the provider's object ${provider.key} ${mismatch}; rename yours, or ask the provider to delete theirs`;
    return { actions: [], problem };
  }
  const identity: CopyIdentity = {
    namespace: serviceNamespace.name,
    owner: 'consumer',
    origin: {
      consumerNamespace: consumer.namespace,
      consumerUid: consumer.uid,
      copyOf: copyOfValue(consumer.name, facts),
    },
  };
  return copyTo('provider', consumer, provider, identity);
}

/** Plans an object that the provider owns: its copy in the consumer. */
function planProviderOwned(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed, consumerNamespace, serviceNamespace, providerIdentity } = facts;
  if (!provider || provider.deleting) return consumer ? planConsumerCopyDelete(consumer, facts) : nothing;
  if (!claimed.provider || serviceNamespace.kind !== 'ready') return nothing;
  if (isSystemNamespace(consumerNamespace)) {
    return {
      actions: [],
      problem:
        'the provider owns it, and the server copies no object of a provider to a system namespace (kube-*); ask the provider to use another namespace',
    };
  }
  if (consumer && consumer.owner === undefined) {
    return {
      actions: [],
      problem:
        "the provider has its own object of this name, which would overwrite it; rename or delete yours, or label it kube-bind.io/owner=provider to accept the provider's",
    };
  }
  if (!consumer && !facts.isNamespaceActive) return { actions: [], waitsFor: `the namespace ${consumerNamespace}` };
  if (!consumer && !facts.mayCopyToConsumer) {
    return { actions: [], waitsFor: `a bound object in the namespace ${consumerNamespace}` };
  }
  const identity: CopyIdentity = {
    namespace: consumerNamespace,
    owner: 'provider',
    origin: { providerNamespace: serviceNamespace.name, providerUid: provider.uid, providerIdentity },
  };
  return copyTo('consumer', provider, consumer, identity);
}

function copyTo(side: Side, original: ClaimedView, copy: ClaimedView | undefined, identity: CopyIdentity): ClaimPlan {
  const label: ClaimAction[] =
    original.owner === identity.owner ? [] : [{ kind: 'label', side: side === 'consumer' ? 'provider' : 'consumer' }];
  if (!copy) return { actions: [...label, { kind: 'create', side, identity }] };
  if (copy.deleting) return { actions: label, waitsFor: 'the deletion of the copy' };
  if (isInSync(original, copy, identity)) return { actions: label };
  if (!mustBeReplaced(original, copy)) return { actions: [...label, { kind: 'update', side, identity }] };
  return { actions: [...label, { kind: 'delete', side, uid: copy.uid, reason: 'replaced' }] };
}

/**
 * Whether the provider object is the copy of `consumer`, or of an earlier consumer object of that name. A uid annotation with
 * the uid of `consumer` proves it. Otherwise, the owner label must be `consumer`. If other consumers may use the service namespace, the
 * uid annotation must also be absent, as in copies of older konnectors, or have the uid of the last consumer object of that name that
 * left the store.
 */
function isCopyOf(consumer: ClaimedView, { owner, origin }: ClaimedView, facts: ClaimFacts): boolean {
  if (origin.consumerUid === consumer.uid) return true;
  if (owner !== 'consumer') return false;
  return !isShared(facts) || origin.consumerUid === undefined || origin.consumerUid === facts.deleted.consumer?.uid;
}

function planProviderCopyDelete(copy: ClaimedView, facts: ClaimFacts): ClaimPlan {
  const { uid, origin } = copy;
  switch (creatorOf(copy, facts)) {
    case 'thisServer':
      return {
        actions: [
          { kind: 'delete', side: 'provider', uid, reason: reasonOf(origin.consumerUid, facts.deleted.consumer) },
        ],
      };
    case 'unsure':
      return { actions: [], requeueAfterMs: conflictRecheckMs };
    default:
      return nothing;
  }
}

/**
 * Who created the provider object as a copy. `thisServer`: this server, or an earlier konnector of this cluster; the server may delete it.
 * `unsure`: perhaps another konnector that still runs.
 * Undefined: nothing proves that the object is a copy from this cluster, the service namespace is not ready, or the object is being deleted.
 */
function creatorOf(
  { name, owner, origin, deleting }: ClaimedView,
  facts: ClaimFacts,
): 'thisServer' | 'unsure' | undefined {
  const { consumer, serviceNamespace, consumerNamespace, deleted, hasConflictingKonnector } = facts;
  if (owner !== 'consumer' || deleting || serviceNamespace.kind !== 'ready' || !origin.consumerUid) return undefined;
  if ((origin.consumerNamespace ?? consumerNamespace) !== consumerNamespace) return undefined;
  if (origin.consumerUid === (consumer ?? deleted.consumer)?.uid) return 'thisServer';
  // A copy that names another original belongs to another cluster with the same kubeconfig, or it is a clone of a copy.
  if (origin.copyOf !== undefined) return origin.copyOf === copyOfValue(name, facts) ? 'thisServer' : undefined;
  if (isShared(facts)) return undefined;
  return hasConflictingKonnector ? 'unsure' : 'thisServer';
}

/** The expected value of `copyOf`; undefined while the consumer cluster is not known. */
const copyOfValue = (name: string, { consumerCluster, consumerNamespace }: ClaimFacts): string | undefined =>
  consumerCluster === undefined ? undefined : `${consumerCluster}/${consumerNamespace}/${name}`;

function planConsumerCopyDelete(copy: ClaimedView, facts: ClaimFacts): ClaimPlan {
  if (!isCopyFromProvider(copy, facts)) return nothing;
  const reason = facts.provider ? 'deleted' : reasonOf(copy.origin.providerUid, facts.deleted.provider);
  return { actions: [{ kind: 'delete', side: 'consumer', uid: copy.uid, reason }] };
}

/** Whether the consumer object is a copy from this provider that the server may delete. False if it is being deleted. */
function isCopyFromProvider({ owner, origin, deleting }: ClaimedView, facts: ClaimFacts): boolean {
  const { provider, deleted, serviceNamespace } = facts;
  if (owner !== 'provider' || deleting || serviceNamespace.kind !== 'ready') return false;
  if (!origin.providerUid || origin.providerNamespace !== serviceNamespace.name) return false;
  // In a shared service namespace, a copy without the provider's uid may come from another provider: the uid of its original decides.
  const isIdentified = origin.providerIdentity !== undefined || !isShared(facts);
  return isIdentified || origin.providerUid === (provider ?? deleted.provider)?.uid;
}

/** Plans one key while its binding is being deleted: deletes the copies on both sides that the server may delete, and keeps all other objects. */
export function planUnclaim(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider } = facts;
  const actions: ClaimAction[] = [];
  if (provider && creatorOf(provider, facts) === 'thisServer') {
    actions.push({ kind: 'delete', side: 'provider', uid: provider.uid, reason: 'unbound' });
  }
  if (consumer && !isOfAnotherProvider(consumer, facts) && isCopyFromProvider(consumer, facts)) {
    actions.push({ kind: 'delete', side: 'consumer', uid: consumer.uid, reason: 'unbound' });
  }
  return { actions };
}

const reasonOf = (uid: string | undefined, deletion: KnownDeletion | undefined): DeleteReason =>
  deletion?.wasObserved && deletion.uid === uid ? 'deleted' : 'inferred';

/** Whether other consumers may use the same service namespace: without isolation, it has the name of the consumer namespace. */
const isShared = ({ serviceNamespace, consumerNamespace }: ClaimFacts): boolean =>
  serviceNamespace.kind === 'ready' && serviceNamespace.name === consumerNamespace;

/** Kubernetes reserves the prefix `kube-`. ConfigMaps and Secrets in these namespaces are the cluster's configuration and credentials. */
const isSystemNamespace = (namespace: string): boolean => namespace.startsWith('kube-');
