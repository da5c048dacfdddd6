import type { Owner } from '../../api/binding/names.ts';
import type { Side } from '../sync-engine/kind.ts';
import type { ClaimedView } from './claimed-view.ts';
import { type CopyIdentity, isInSync, mustBeReplaced } from './copy.ts';

/** All that is known of one key, read at one time. */
export interface ClaimFacts {
  readonly consumer: ClaimedView | undefined;
  readonly provider: ClaimedView | undefined;
  /** Whether a claim selects the object of that side as it is. */
  readonly claimed: Readonly<Record<Side, boolean>>;
  readonly consumerNamespace: string;
  /** uid that tells the consumer cluster from others; undefined while it is not known. */
  readonly consumerCluster: string | undefined;
  /** Whether another konnector reports to the same ClusterBinding. */
  readonly hasConflictingKonnector: boolean;
  /** Whether the consumer namespace exists and stays. */
  readonly namespaceStays: boolean;
  /** Whether the consumer has something bound there, refers to the object, or had the namespace made for providers. */
  readonly isInvited: boolean;
  readonly serviceNamespace: ServiceNamespace;
  /** uid that tells this provider from others; undefined while it is not known. */
  readonly providerIdentity: string | undefined;
  /** The object of that side that last went from under the key, as far as it was known. */
  readonly deleted: Readonly<Record<Side, Deletion | undefined>>;
}

export interface Deletion {
  readonly uid: string;
  /** False when a list did not hold it any more and nobody was seen deleting it. */
  readonly wasObserved: boolean;
}

/** The namespace of the provider for the consumer's: nobody asked for one, it is not there yet, or its name. */
export type ServiceNamespace =
  | { readonly kind: 'none' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'ready'; readonly name: string };

export type ClaimAction =
  /** Ask for a service namespace; everything else follows when there is one. */
  | { readonly kind: 'request-namespace' }
  /** Write onto the original whose it is. */
  | { readonly kind: 'label'; readonly side: Side }
  /** Make the object of `side` a copy of the other side's. */
  | { readonly kind: 'create' | 'update'; readonly side: Side; readonly identity: CopyIdentity }
  /** Only the object with this uid. */
  | { readonly kind: 'delete'; readonly side: Side; readonly uid: string; readonly reason: DeleteReason };

export type DeleteReason =
  /** The original was seen to go. */
  | 'gone'
  /** There is no original; it went while nobody looked. */
  | 'inferred'
  /** The copy cannot become what it should be; it is created anew once it is gone. */
  | 'replaced'
  /** What was claimed is claimed no longer, because the binding goes. */
  | 'unbound';

export interface ClaimPlan {
  /** In this order; each only when those before it were done. */
  readonly actions: readonly ClaimAction[];
  /** Why the object cannot be kept in step, and what to do, in one clause. */
  readonly problem?: string;
  /** What will bring the key back. */
  readonly waitsFor?: string;
  /** When to look again, milliseconds. */
  readonly againInMs?: number;
}

/** Between looks at a copy of which it cannot be told yet whether it is from this provider, milliseconds. */
const identityRecheckMs = 30_000;
/** Between looks at a copy that may be the other konnector's, milliseconds. */
const conflictRecheckMs = 60_000;

const nothing: ClaimPlan = { actions: [] };

/**
 * What to do about one key. A selector alone admits writes, and only from the owner's side to the other; a label alone admits
 * none. Deleting takes no selector, because what is no longer selected must still go with its original, but origin annotations that prove
 * the object to be this binding's copy.
 */
export function planClaim(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed } = facts;
  if (consumer && isOfAnotherProvider(consumer, facts)) {
    if (facts.providerIdentity === undefined) return { actions: [], againInMs: identityRecheckMs };
    return provider && claimed.provider && provider.owner !== 'consumer'
      ? { actions: [], problem: 'it is here already, from another provider; one of the two needs another name' }
      : nothing;
  }
  const owner = ownerOf(facts);
  if (owner === 'consumer') return planUp(facts);
  if (owner === 'provider') return planDown(facts);
  const isWanted = claimed.consumer || claimed.provider;
  if (owner === 'disputed' && isWanted) {
    return {
      actions: [],
      problem: 'both sides label it as their own; delete it on the side that only holds the copy',
    };
  }
  return owner === 'unknown' && isWanted
    ? {
        actions: [],
        problem:
          'it is on both sides and nobody says whose it is; label the original kube-bind.io/owner=consumer or =provider, or delete one of the two',
      }
    : nothing;
}

function ownerOf({ consumer, provider }: ClaimFacts): Owner | 'unknown' | 'disputed' | undefined {
  if (!provider) return consumer && (consumer.owner ?? 'consumer');
  if (!consumer) return provider.owner ?? 'provider';
  if (provider.owner && consumer.owner && provider.owner !== consumer.owner) return 'disputed';
  return provider.owner ?? consumer.owner ?? 'unknown';
}

/**
 * A copy that some provider owns, and not this one or not from this namespace of it. Two providers may have namespaces of the same name,
 * so as long as it is not known which one this is, only the original can tell.
 */
function isOfAnotherProvider(
  { owner, origin }: ClaimedView,
  { provider, deleted, serviceNamespace, providerIdentity }: ClaimFacts,
): boolean {
  if (owner !== 'provider') return false;
  if (origin.providerIdentity !== undefined && origin.providerIdentity !== providerIdentity) {
    return providerIdentity !== undefined || origin.providerUid !== (provider ?? deleted.provider)?.uid;
  }
  const isKnown = serviceNamespace.kind === 'ready' && origin.providerNamespace !== undefined;
  return isKnown && origin.providerNamespace !== serviceNamespace.name;
}

/** The consumer owns it: its copy is in the provider. */
function planUp(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed, serviceNamespace } = facts;
  if (!consumer) return provider ? deleteUp(provider, facts) : nothing;
  if (!claimed.consumer || consumer.deleting) return nothing;
  if (serviceNamespace.kind === 'none') {
    return facts.namespaceStays
      ? { actions: [{ kind: 'request-namespace' }], waitsFor: 'the service namespace' }
      : nothing;
  }
  if (serviceNamespace.kind === 'pending') return { actions: [], waitsFor: 'the service namespace' };
  if (provider && !isCopyOf(consumer, provider, facts)) {
    const whose = provider.owner ? 'belongs to another consumer' : 'is no copy of it';
    const problem = `what the provider has as ${provider.key} ${whose}; rename yours, or have theirs deleted`;
    return { actions: [], problem };
  }
  const identity: CopyIdentity = {
    namespace: serviceNamespace.name,
    owner: 'consumer',
    origin: { consumerNamespace: consumer.namespace, consumerUid: consumer.uid, copyOf: copyOf(consumer.name, facts) },
  };
  return copyTo('provider', consumer, provider, identity);
}

/** The provider owns it: its copy is in the consumer. */
function planDown(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider, claimed, consumerNamespace, serviceNamespace, providerIdentity } = facts;
  if (!provider || provider.deleting) return consumer ? deleteDown(consumer, facts) : nothing;
  if (!claimed.provider || serviceNamespace.kind !== 'ready') return nothing;
  if (isSystemNamespace(consumerNamespace)) {
    return {
      actions: [],
      problem: "it is the provider's and would go to a system namespace, which is not allowed",
    };
  }
  if (consumer && consumer.owner === undefined) {
    return {
      actions: [],
      problem:
        'the provider has one of its own, which would overwrite it; rename or delete it, or label it kube-bind.io/owner=provider to give it up',
    };
  }
  if (!consumer && !facts.namespaceStays) return { actions: [], waitsFor: `the namespace ${consumerNamespace}` };
  if (!consumer && !facts.isInvited) {
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
  if (copy.deleting) return { actions: label, waitsFor: 'the copy to be gone' };
  if (isInSync(original, copy, identity)) return { actions: label };
  if (!mustBeReplaced(original, copy)) return { actions: [...label, { kind: 'update', side, identity }] };
  return { actions: [...label, { kind: 'delete', side, uid: copy.uid, reason: 'replaced' }] };
}

/**
 * Whether what is in the provider under the name is the copy of `consumer`, or of an earlier object of that name. Where the
 * service namespace is ours alone its label proves that; where consumers share it, only the uid does. Copies of older konnectors
 * say no uid.
 */
function isCopyOf(consumer: ClaimedView, { owner, origin }: ClaimedView, facts: ClaimFacts): boolean {
  if (origin.consumerUid === consumer.uid) return true;
  if (owner !== 'consumer') return false;
  return !isShared(facts) || origin.consumerUid === undefined || origin.consumerUid === facts.deleted.consumer?.uid;
}

function deleteUp(copy: ClaimedView, facts: ClaimFacts): ClaimPlan {
  const { uid, origin } = copy;
  switch (ownershipUp(copy, facts)) {
    case 'ours':
      return {
        actions: [
          { kind: 'delete', side: 'provider', uid, reason: reasonOf(origin.consumerUid, facts.deleted.consumer) },
        ],
      };
    case 'unsure':
      return { actions: [], againInMs: conflictRecheckMs };
    default:
      return nothing;
  }
}

/** Whether what is in the provider is a copy that we made, so that it may be deleted; `unsure` while somebody else may have made it. */
function ownershipUp({ name, owner, origin, deleting }: ClaimedView, facts: ClaimFacts): 'ours' | 'unsure' | undefined {
  const { consumer, serviceNamespace, consumerNamespace, deleted, hasConflictingKonnector } = facts;
  if (owner !== 'consumer' || deleting || serviceNamespace.kind !== 'ready' || !origin.consumerUid) return undefined;
  if ((origin.consumerNamespace ?? consumerNamespace) !== consumerNamespace) return undefined;
  if (origin.consumerUid === (consumer ?? deleted.consumer)?.uid) return 'ours';
  // Of another cluster with the same kubeconfig, or the clone of a copy.
  if (origin.copyOf !== undefined) return origin.copyOf === copyOf(name, facts) ? 'ours' : undefined;
  if (isShared(facts)) return undefined;
  return hasConflictingKonnector ? 'unsure' : 'ours';
}

const copyOf = (name: string, { consumerCluster, consumerNamespace }: ClaimFacts): string | undefined =>
  consumerCluster === undefined ? undefined : `${consumerCluster}/${consumerNamespace}/${name}`;

function deleteDown(copy: ClaimedView, facts: ClaimFacts): ClaimPlan {
  if (!isOwnedDown(copy, facts)) return nothing;
  const reason = facts.provider ? 'gone' : reasonOf(copy.origin.providerUid, facts.deleted.provider);
  return { actions: [{ kind: 'delete', side: 'consumer', uid: copy.uid, reason }] };
}

function isOwnedDown({ owner, origin, deleting }: ClaimedView, facts: ClaimFacts): boolean {
  const { provider, deleted, serviceNamespace } = facts;
  if (owner !== 'provider' || deleting || serviceNamespace.kind !== 'ready') return false;
  if (!origin.providerUid || origin.providerNamespace !== serviceNamespace.name) return false;
  // Nothing but its original says which of the providers that share the name it is from.
  const isTold = origin.providerIdentity !== undefined || !isShared(facts);
  return isTold || origin.providerUid === (provider ?? deleted.provider)?.uid;
}

/** What to do about one key when its binding goes: copies go on either side, originals stay. */
export function planUnclaim(facts: ClaimFacts): ClaimPlan {
  const { consumer, provider } = facts;
  const actions: ClaimAction[] = [];
  if (provider && ownershipUp(provider, facts) === 'ours') {
    actions.push({ kind: 'delete', side: 'provider', uid: provider.uid, reason: 'unbound' });
  }
  if (consumer && !isOfAnotherProvider(consumer, facts) && isOwnedDown(consumer, facts)) {
    actions.push({ kind: 'delete', side: 'consumer', uid: consumer.uid, reason: 'unbound' });
  }
  return { actions };
}

const reasonOf = (uid: string | undefined, deletion: Deletion | undefined): DeleteReason =>
  deletion?.wasObserved && deletion.uid === uid ? 'gone' : 'inferred';

/** Several consumers have this namespace of the provider: nothing isolates them. */
const isShared = ({ serviceNamespace, consumerNamespace }: ClaimFacts): boolean =>
  serviceNamespace.kind === 'ready' && serviceNamespace.name === consumerNamespace;

/** Kubernetes keeps the prefix for itself; ConfigMaps and Secrets there configure clusters and hand out credentials. */
const isSystemNamespace = (namespace: string): boolean => namespace.startsWith('kube-');
