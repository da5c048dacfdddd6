import type { Owner } from '../../api/binding/names.ts';
import { type PassAction, serviceNamespaceOf } from '../sync-engine/strategy.ts';
import type { Side } from '../sync-engine/syncer.ts';
import type { ClaimedView } from './claimed-view.ts';
import { type CopyIdentity, isInSync, mustBeReplaced } from './copy.ts';

/** The current state of one key. */
export interface ClaimFacts {
  readonly consumer: ClaimedView | undefined;
  readonly provider: ClaimedView | undefined;
  /** A claim selects the object of that side. */
  readonly claimed: Readonly<Record<Side, boolean>>;
  readonly consumerNamespace: string;
  readonly consumerCluster: string | undefined;
  readonly isNamespaceActive: boolean;
  /** The namespace has a bound object, one that refers to this, or is there for the provider. */
  readonly mayCopyToConsumer: boolean;
  readonly serviceNamespace: ServiceNamespace;
  readonly providerIdentity: string | undefined;
  readonly deleted: Readonly<Record<Side, KnownDeletion | undefined>>;
}

/** An object that left the store. */
export interface KnownDeletion {
  readonly uid: string;
  /** False if no watch event showed it, as when a watch ended: the object may still exist. */
  readonly wasObserved: boolean;
}

/** `none`: no APIServiceNamespace requests it. `pending`: no name yet, or being deleted. */
export type ServiceNamespace =
  | { readonly kind: 'none' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'ready'; readonly name: string };

/** Each runs only if all before it succeeded. */
export type ClaimAction = PassAction | { readonly do: 'requestNamespace'; readonly namespace: string } | ClaimWrite;

export type ClaimWrite =
  /** Set the owner label on the original. */
  | { readonly do: 'label'; readonly side: Side }
  /** Create or update the object of `side` as a copy of the other side's object. */
  | { readonly do: 'create' | 'update'; readonly side: Side; readonly identity: CopyIdentity }
  /** `inferred`: the original does not exist, and its deletion was not observed. */
  | { readonly do: 'delete'; readonly side: Side; readonly uid: string; readonly inferred: boolean };

/** Requeue delay while the uid of the provider is not known. */
const identityRecheckMs = 30_000;

const nothing: readonly ClaimAction[] = [];
const wait = (missing: string): readonly ClaimAction[] => [{ do: 'wait', missing }];
const report = (problem: string): readonly ClaimAction[] => [{ do: 'report', problem }];

/**
 * Plans one key. An object has one owner: by its owner label, or the only side that it is on.
 *
 *   consumer owns   consumer ── copy ─> provider, in the service namespace
 *   provider owns   provider ── copy ─> consumer, where `mayCopyToConsumer`
 *
 * Only selected originals are copied. A copy without its original is deleted, selected or not, if
 * its origin annotations match this consumer or provider.
 */
export function planClaim(facts: ClaimFacts): readonly ClaimAction[] {
  const { consumer, provider, claimed } = facts;
  if (consumer && isOfAnotherProvider(consumer, facts)) {
    if (facts.providerIdentity === undefined) return [{ do: 'requeue', ms: identityRecheckMs }];
    return provider && claimed.provider && provider.owner !== 'consumer'
      ? report(
          'this cluster already has a copy under this name, from another provider or another namespace of this provider; rename one of the two originals, or delete the copy if its original no longer exists',
        )
      : nothing;
  }
  const owner = ownerOf(facts);
  if (owner === 'consumer') return planConsumerOwned(facts);
  if (owner === 'provider') return planProviderOwned(facts);
  if (owner === undefined || !(claimed.consumer || claimed.provider)) return nothing;
  return report(
    owner === 'disputed'
      ? 'the owner labels of the two objects differ; delete the copy, and set the label kube-bind.io/owner of the original to its own side: consumer for yours, provider for that of the provider'
      : "it exists on both sides without an owner label; delete one of the two, or label the one to overwrite: yours with kube-bind.io/owner=provider, or the provider's with kube-bind.io/owner=consumer",
  );
}

/** `disputed`: the two owner labels differ. `unknown`: neither object has one. */
function ownerOf({ consumer, provider }: ClaimFacts): Owner | 'unknown' | 'disputed' | undefined {
  if (!provider) return consumer && (consumer.owner ?? 'consumer');
  if (!consumer) return provider.owner ?? 'provider';
  if (provider.owner && consumer.owner && provider.owner !== consumer.owner) return 'disputed';
  return provider.owner ?? consumer.owner ?? 'unknown';
}

/**
 * A copy from another provider, or another namespace of this one. While the uid of this provider is
 * not known, the uid of the original decides.
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

function planConsumerOwned(facts: ClaimFacts): readonly ClaimAction[] {
  const { consumer, provider, claimed, consumerNamespace: namespace, serviceNamespace } = facts;
  if (!consumer) return provider ? planProviderCopyDelete(provider, facts) : nothing;
  if (!claimed.consumer || consumer.deleting) return nothing;
  if (serviceNamespace.kind === 'none') {
    return facts.isNamespaceActive ? [{ do: 'requestNamespace', namespace }] : nothing;
  }
  if (serviceNamespace.kind === 'pending') return wait(serviceNamespaceOf(namespace));
  if (provider && !isCopyOf(consumer, provider, facts)) {
    const mismatch = provider.owner
      ? 'belongs to another consumer, or to an earlier object of this name'
      : 'is not a copy of it';
    return report(
      `the provider's object ${provider.key} ${mismatch}; rename yours, or ask the provider to delete theirs`,
    );
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

function planProviderOwned(facts: ClaimFacts): readonly ClaimAction[] {
  const { consumer, provider, claimed, consumerNamespace, serviceNamespace, providerIdentity } = facts;
  if (!provider || provider.deleting) return consumer ? planConsumerCopyDelete(consumer, facts) : nothing;
  if (!claimed.provider || serviceNamespace.kind !== 'ready') return nothing;
  if (isSystemNamespace(consumerNamespace)) {
    return report(
      'the provider owns it, and the server copies no object of a provider to a system namespace (kube-*); ask the provider to use another namespace',
    );
  }
  if (consumer && consumer.owner === undefined) {
    return report(
      "the provider has its own object of this name, which would overwrite it; rename or delete yours, or label it kube-bind.io/owner=provider to accept the provider's",
    );
  }
  if (!consumer && !facts.isNamespaceActive) return wait(`the namespace ${consumerNamespace}`);
  if (!consumer && !facts.mayCopyToConsumer) return wait(`a bound object in the namespace ${consumerNamespace}`);
  const identity: CopyIdentity = {
    namespace: consumerNamespace,
    owner: 'provider',
    origin: { providerNamespace: serviceNamespace.name, providerUid: provider.uid, providerIdentity },
  };
  return copyTo('consumer', provider, consumer, identity);
}

function copyTo(
  side: Side,
  original: ClaimedView,
  copy: ClaimedView | undefined,
  identity: CopyIdentity,
): readonly ClaimAction[] {
  const label: ClaimAction[] =
    original.owner === identity.owner ? [] : [{ do: 'label', side: side === 'consumer' ? 'provider' : 'consumer' }];
  if (!copy) return [...label, { do: 'create', side, identity }];
  if (copy.deleting) return [...label, ...wait('the deletion of the copy')];
  if (isInSync(original, copy, identity)) return label;
  if (!mustBeReplaced(original, copy)) return [...label, { do: 'update', side, identity }];
  return [...label, { do: 'delete', side, uid: copy.uid, inferred: false }];
}

/**
 * The copy of `consumer`, or of an earlier object of that name. In a shared service namespace, the
 * owner label does not prove it if the copy names the uid of another object.
 */
function isCopyOf(consumer: ClaimedView, { owner, origin }: ClaimedView, facts: ClaimFacts): boolean {
  if (origin.consumerUid === consumer.uid) return true;
  if (owner !== 'consumer') return false;
  return !isShared(facts) || origin.consumerUid === undefined || origin.consumerUid === facts.deleted.consumer?.uid;
}

function planProviderCopyDelete(copy: ClaimedView, facts: ClaimFacts): readonly ClaimAction[] {
  if (!isOwnCopy(copy, facts)) return nothing;
  const inferred = !wasObserved(copy.origin.consumerUid, facts.deleted.consumer);
  return [{ do: 'delete', side: 'provider', uid: copy.uid, inferred }];
}

/** Proof: the copy has the uid of the original, or names this cluster and the original. */
function isOwnCopy({ name, owner, origin, deleting }: ClaimedView, facts: ClaimFacts): boolean {
  const { consumer, serviceNamespace, consumerNamespace, deleted } = facts;
  if (owner !== 'consumer' || deleting || serviceNamespace.kind !== 'ready' || !origin.consumerUid) return false;
  if ((origin.consumerNamespace ?? consumerNamespace) !== consumerNamespace) return false;
  if (origin.consumerUid === (consumer ?? deleted.consumer)?.uid) return true;
  return origin.copyOf !== undefined && origin.copyOf === copyOfValue(name, facts);
}

const copyOfValue = (name: string, { consumerCluster, consumerNamespace }: ClaimFacts): string | undefined =>
  consumerCluster === undefined ? undefined : `${consumerCluster}/${consumerNamespace}/${name}`;

function planConsumerCopyDelete(copy: ClaimedView, facts: ClaimFacts): readonly ClaimAction[] {
  if (!isCopyFromProvider(copy, facts)) return nothing;
  const inferred = !facts.provider && !wasObserved(copy.origin.providerUid, facts.deleted.provider);
  return [{ do: 'delete', side: 'consumer', uid: copy.uid, inferred }];
}

/** Whether it is a copy from this provider that the server may delete. */
function isCopyFromProvider({ owner, origin, deleting }: ClaimedView, facts: ClaimFacts): boolean {
  const { provider, deleted, serviceNamespace } = facts;
  if (owner !== 'provider' || deleting || serviceNamespace.kind !== 'ready') return false;
  if (!origin.providerUid || origin.providerNamespace !== serviceNamespace.name) return false;
  // In a shared namespace it may come from another provider: the uid of its original decides.
  const isIdentified = origin.providerIdentity !== undefined || !isShared(facts);
  return isIdentified || origin.providerUid === (provider ?? deleted.provider)?.uid;
}

/** While the binding is being deleted: deletes the copies that the server may delete. */
export function planUnclaim(facts: ClaimFacts): readonly ClaimAction[] {
  const { consumer, provider } = facts;
  const actions: ClaimAction[] = [];
  if (provider && isOwnCopy(provider, facts)) {
    actions.push({ do: 'delete', side: 'provider', uid: provider.uid, inferred: false });
  }
  if (consumer && !isOfAnotherProvider(consumer, facts) && isCopyFromProvider(consumer, facts)) {
    actions.push({ do: 'delete', side: 'consumer', uid: consumer.uid, inferred: false });
  }
  return actions;
}

const wasObserved = (uid: string | undefined, deletion: KnownDeletion | undefined): boolean =>
  deletion?.wasObserved === true && deletion.uid === uid;

/** Without isolation, other consumers may use the same service namespace. */
const isShared = ({ serviceNamespace, consumerNamespace }: ClaimFacts): boolean =>
  serviceNamespace.kind === 'ready' && serviceNamespace.name === consumerNamespace;

/** Reserved by Kubernetes: what is there configures the cluster. */
const isSystemNamespace = (namespace: string): boolean => namespace.startsWith('kube-');
