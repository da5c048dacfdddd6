import { consumerUidAnnotation, providerNamespaceAnnotation } from '../../api/binding/names.ts';
import type { KubeObject, OwnerReference, Resource } from '../../api/object.ts';
import { inexactNumber } from '../../kit/inexact-number.ts';
import { own } from '../../kit/json-value.ts';
import { type PassAction, serviceNamespaceOf } from '../sync-engine/strategy.ts';
import type { SyncMode } from '../sync-engine/syncer.ts';
import type { Place } from './isolation.ts';
import { type BindingIdentity, hasOtherOrigin, type Ownership, ownershipOf } from './ownership.ts';
import {
  addFinalizerPatch,
  copyPatch,
  identityAnnotationsPatch,
  newCopy,
  removeFinalizerPatch,
  type StatusPatch,
  statusPatch,
  syncedFields,
} from './patches.ts';
import { annotationOf, hasSyncerFinalizer, isDeleting, type SyncedObject } from './synced-object.ts';

/** From the watches and the writes that they have not shown yet. */
export interface ObjectFacts {
  readonly mode: SyncMode;
  /** `namespace/name`, or `name` if cluster-scoped. */
  readonly key: string;
  readonly consumer: SyncedObject | undefined;
  /** Of the consumer object of this name whose deletion was observed. */
  readonly deletedConsumerUid: string | undefined;
  readonly place: Place;
  /** At the key of the copy; it may belong to another consumer. */
  readonly copy: SyncedObject | undefined;
  /** The watch has not confirmed the delete yet. */
  readonly copyDeleteAccepted: boolean;
  /** By the watch or a read. Without it and without `copy`, the finalizer stays. */
  readonly isCopyAbsent: boolean;
}

/** Shared by all keys of a syncer. */
export interface SyncContext extends BindingIdentity {
  readonly copyResource: Resource;
  readonly owner: OwnerReference | undefined;
  /** The consumer's kind has `/status`. */
  readonly statusSubresource: boolean;
}

/** `key`: of the copy. Others patch the consumer object. */
export type ObjectAction =
  | PassAction
  | { readonly do: 'requestNamespace'; readonly namespace: string }
  | { readonly do: 'create'; readonly key: string; readonly object: KubeObject }
  | { readonly do: 'update'; readonly key: string; readonly patch: object }
  | { readonly do: 'addFinalizer'; readonly patch: object }
  | { readonly do: 'status'; readonly patch: StatusPatch }
  /** `inferred`: the deletion of the consumer object was not observed. */
  | { readonly do: 'deleteCopy'; readonly key: string; readonly uid: string; readonly inferred: boolean }
  | { readonly do: 'checkCopy'; readonly key: string }
  | { readonly do: 'removeFinalizer'; readonly patch: object };

/** While the place is unknown, as an earlier sync recorded it on the consumer object. */
export function copyKeyOf(place: Place, consumer: SyncedObject | undefined): string | undefined {
  if (place.kind === 'at') return place.key;
  if (place.kind === 'impossible' || !consumer) return undefined;
  const namespace = annotationOf(consumer, providerNamespaceAnnotation);
  return namespace && `${namespace}/${consumer.object.metadata.name}`;
}

/**
 * The actions that sync both sides, in order. The reconciler plans again after `create` and
 * `checkCopy`, and after the `update` before a stale copy is deleted.
 *
 *   consumer object   none        delete the copy, only with proof
 *                     deleting    delete the copy, then remove the finalizer
 *                     live        create or update the copy, then finalizer and status
 */
export function plan(facts: ObjectFacts, context: SyncContext): readonly ObjectAction[] {
  const { mode, consumer } = facts;
  if (!consumer) return planWithoutConsumer(facts, context);
  if (isDeleting(consumer)) return planDeletion(facts, consumer, context);
  return mode === 'drain' ? [] : planSync(facts, consumer, context);
}

/**
 * Proof: the deletion was observed, or the copy names this binding and object. Timestamps prove
 * nothing: the clusters have different clocks.
 */
function planWithoutConsumer(facts: ObjectFacts, context: SyncContext): readonly ObjectAction[] {
  const { copy, copyDeleteAccepted, place, deletedConsumerUid } = facts;
  const key = copyKeyOf(place, undefined);
  if (!copy || key === undefined || copyDeleteAccepted || isDeleting(copy)) return [];
  const ownership = ownershipOf(copy, undefined, context, facts.key);
  const wasObserved =
    deletedConsumerUid !== undefined && annotationOf(copy, consumerUidAnnotation) === deletedConsumerUid;
  if (ownership !== 'orphan' && !(ownership === 'unknown' && wasObserved)) return [];
  return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: !wasObserved }];
}

function planDeletion(facts: ObjectFacts, consumer: SyncedObject, context: SyncContext): readonly ObjectAction[] {
  const { copy, copyDeleteAccepted, isCopyAbsent, place } = facts;
  const key = copyKeyOf(place, consumer);
  const finalizerRemoval = hasSyncerFinalizer(consumer) ? [removeFinalizer(consumer)] : [];
  if (key === undefined) return finalizerRemoval;
  if (!copy) return isCopyAbsent || finalizerRemoval.length === 0 ? finalizerRemoval : [{ do: 'checkCopy', key }];
  const ownership: Ownership = ownershipOf(copy, consumer, context, facts.key);
  if (ownership === 'current') {
    if (copyDeleteAccepted || isDeleting(copy))
      return [{ do: 'wait', missing: `the deletion of ${key} in the provider` }];
    return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: false }];
  }
  // Never synced without the finalizer, so the stale copy stays; so does one of another binding.
  if (ownership !== 'stale' || finalizerRemoval.length === 0 || hasOtherOrigin(copy, context, facts.key))
    return finalizerRemoval;
  return [{ do: 'update', key, patch: identityAnnotationsPatch(consumer, copy, context) }];
}

function planSync(facts: ObjectFacts, consumer: SyncedObject, context: SyncContext): readonly ObjectAction[] {
  const { copy, copyDeleteAccepted, place } = facts;
  if (place.kind === 'impossible') return [{ do: 'report', problem: place.problem }];
  if (place.kind === 'unmapped') {
    const { namespace } = place;
    if (place.requested) return [{ do: 'wait', missing: serviceNamespaceOf(namespace) }];
    return [{ do: 'requestNamespace', namespace }];
  }
  const { key, terminating } = place;
  const { copyResource, owner } = context;
  const inexact = inexactNumber(Object.fromEntries(syncedFields(consumer.object)));
  if (!copy) {
    if (inexact !== undefined) return [inexactProblem(inexact, 'the object is not copied')];
    if (terminating) return [{ do: 'wait', missing: `the deletion of the provider's namespace of ${key}` }];
    const object = newCopy({ consumer, resource: copyResource, key, identity: context, owner });
    return [{ do: 'create', key, object }];
  }
  if (ownershipOf(copy, consumer, context, facts.key) === 'foreign') {
    return [{ do: 'report', problem: notACopy(key) }];
  }
  if (copyDeleteAccepted || isDeleting(copy))
    return [{ do: 'wait', missing: `the deletion of ${key} in the provider` }];
  const actions: ObjectAction[] = [];
  if (inexact !== undefined)
    actions.push(inexactProblem(inexact, 'a change with such a number does not reach the copy'));
  const update = copyPatch(consumer, copy, context);
  // A part of a change may have another meaning than the whole.
  if (update && inexactNumber(update) === undefined) actions.push({ do: 'update', key, patch: update });
  const finalizer = addFinalizerPatch(consumer, copy);
  if (finalizer) actions.push({ do: 'addFinalizer', patch: finalizer });
  const inexactStatus = inexactNumber(own(copy.object, 'status'), 'status');
  if (inexactStatus !== undefined) actions.push(inexactStatusProblem(inexactStatus));
  const status = statusPatch(consumer, copy);
  if (status) actions.push(context.statusSubresource ? { do: 'status', patch: status } : noStatus(copyResource));
  return actions;
}

const removeFinalizer = (consumer: SyncedObject): ObjectAction => ({
  do: 'removeFinalizer',
  patch: removeFinalizerPatch(consumer),
});

const notACopy = (key: string): string =>
  `the provider already has an object ${JSON.stringify(key)} that is not the copy of this object; it belongs to the provider, to another cluster, or to another namespace of this cluster, and the server does not change it; use another name, or ask the provider whose object it is`;

/** JavaScript would silently change such an integer. `what`: what follows for the object. */
const inexactProblem = (path: string, what: string): ObjectAction => ({
  do: 'report',
  problem: `${path} is an integer between 2^53 and 2^63, which the server cannot copy exactly, so ${what}; use a smaller number, or a string if the kind allows it`,
});

const inexactStatusProblem = (path: string): ObjectAction => ({
  do: 'report',
  problem: `${path} of the copy is an integer between 2^53 and 2^63, which the server cannot copy exactly, so this field is not copied back; ask the provider to use a smaller number or a string`,
});

const noStatus = ({ version, kind }: Resource): ObjectAction => ({
  do: 'report',
  problem: `the status of the copy is not copied back, because version ${version} of ${kind} has no status subresource; ask the provider to add one`,
});
