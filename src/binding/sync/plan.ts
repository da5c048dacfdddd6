import { consumerUidAnnotation, providerNamespaceAnnotation } from '../../api/binding/names.ts';
import type { KubeObject, OwnerReference, Resource } from '../../api/object.ts';
import { inexactNumber } from '../../kit/inexact-number.ts';
import { own } from '../../kit/json-value.ts';
import type { SyncMode } from '../sync-engine/kind.ts';
import type { Place } from './isolation.ts';
import { type BindingIdentity, isMadeByAnother, type Ownership, ownershipOf } from './ownership.ts';
import {
  addFinalizerPatch,
  copyAnnotationsPatch,
  copyPatch,
  newCopy,
  removeFinalizerPatch,
  statusPatch,
  syncedFields,
} from './patches.ts';
import { annotationOf, hasSyncerFinalizer, isDeleting, type SyncedObject } from './synced-object.ts';

/** One key as it is known now: what the watches have shown, and our own writes that they have not shown yet. */
export interface ObjectFacts {
  readonly mode: SyncMode;
  /** Of the consumer: `namespace/name`, or `name` of what is cluster-scoped. */
  readonly key: string;
  /** Undefined: it is known that there is none. */
  readonly consumer: SyncedObject | undefined;
  /** The consumer object that was seen being deleted under this name. */
  readonly deletedConsumerUid: string | undefined;
  readonly place: Place;
  readonly copy: SyncedObject | undefined;
  /** Its deletion has been asked for. */
  readonly isCopyDeleting: boolean;
  /** It was seen to go, or looked for in vain: that the watch does not show a copy is not enough to let go of the finalizer. */
  readonly isCopyAbsent: boolean;
}

/** What is the same for all keys. */
export interface SyncContext extends BindingIdentity {
  readonly provider: Resource;
  readonly owner: OwnerReference | undefined;
  /** Whether the consumer's kind has `/status`. */
  readonly statusSubresource: boolean;
}

export type ObjectAction =
  | { readonly do: 'requestNamespace'; readonly namespace: string }
  | { readonly do: 'create'; readonly key: string; readonly object: KubeObject }
  | { readonly do: 'update'; readonly key: string; readonly patch: object }
  | { readonly do: 'addFinalizer'; readonly patch: object }
  | { readonly do: 'status'; readonly patch: object }
  | { readonly do: 'deleteCopy'; readonly key: string; readonly uid: string; readonly inferred: boolean }
  | { readonly do: 'checkCopy'; readonly key: string }
  | { readonly do: 'removeFinalizer'; readonly patch: object }
  | { readonly do: 'wait'; readonly missing: string }
  | { readonly do: 'report'; readonly problem: string };

/** The place of the copy: the one that the name maps to, or, while that is not known, the one we wrote down. */
export function copyKeyOf(place: Place, consumer: SyncedObject | undefined): string | undefined {
  if (place.kind === 'at') return place.key;
  if (place.kind === 'impossible' || !consumer) return undefined;
  const namespace = annotationOf(consumer, providerNamespaceAnnotation);
  return namespace && `${namespace}/${consumer.object.metadata.name}`;
}

/** What brings both sides into step, in order. After `requestNamespace`, `create`, `checkCopy` and `copyAnnotationsPatch` it is asked again. */
export function plan(facts: ObjectFacts, context: SyncContext): readonly ObjectAction[] {
  const { mode, consumer } = facts;
  if (!consumer) return planWithoutConsumer(facts, context);
  if (isDeleting(consumer)) return planDeletion(facts, consumer, context);
  return mode === 'drain' ? [] : planSync(facts, consumer, context);
}

/**
 * Only what is proved to be of an object that is gone: that was seen going, or the copy says that it was made for it through this very
 * binding. Ages prove nothing, as the two clusters have clocks of their own.
 */
function planWithoutConsumer(facts: ObjectFacts, context: SyncContext): readonly ObjectAction[] {
  const { copy, isCopyDeleting, place, deletedConsumerUid } = facts;
  const key = copyKeyOf(place, undefined);
  if (!copy || key === undefined || isCopyDeleting || isDeleting(copy)) return [];
  const ownership = ownershipOf(copy, undefined, context, facts.key);
  const wasSeen = deletedConsumerUid !== undefined && annotationOf(copy, consumerUidAnnotation) === deletedConsumerUid;
  if (ownership !== 'orphan' && !(ownership === 'unknown' && wasSeen)) return [];
  return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: !wasSeen }];
}

function planDeletion(facts: ObjectFacts, consumer: SyncedObject, context: SyncContext): readonly ObjectAction[] {
  const { copy, isCopyDeleting, isCopyAbsent, place } = facts;
  const key = copyKeyOf(place, consumer);
  const release = hasSyncerFinalizer(consumer) ? [removeFinalizer(consumer)] : [];
  if (key === undefined) return release;
  if (!copy) return isCopyAbsent || release.length === 0 ? release : [{ do: 'checkCopy', key }];
  const ownership: Ownership = ownershipOf(copy, consumer, context, facts.key);
  if (ownership === 'ours') {
    if (isCopyDeleting || isDeleting(copy)) return [{ do: 'wait', missing: `the end of ${key} in the provider` }];
    return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: false }];
  }
  // Without our finalizer it never was what this copy is of; and what it is the copy of now, another binding has made it.
  if (ownership !== 'stale' || release.length === 0 || isMadeByAnother(copy, context, facts.key)) return release;
  return [{ do: 'update', key, patch: copyAnnotationsPatch(consumer, copy, context) }];
}

function planSync(facts: ObjectFacts, consumer: SyncedObject, context: SyncContext): readonly ObjectAction[] {
  const { copy, isCopyDeleting, place } = facts;
  if (place.kind === 'impossible') return [{ do: 'report', problem: place.problem }];
  if (place.kind === 'unmapped') {
    const { namespace } = place;
    if (place.requested) return [{ do: 'wait', missing: `the provider's namespace for ${namespace}` }];
    return [{ do: 'requestNamespace', namespace }];
  }
  const { key, closing } = place;
  const { provider, owner } = context;
  const inexact = inexactNumber(Object.fromEntries(syncedFields(consumer.object)));
  if (!copy) {
    if (inexact !== undefined) return [inexactProblem(inexact, 'it is not copied')];
    if (closing) return [{ do: 'wait', missing: `the end of the provider's namespace of ${key}` }];
    const object = newCopy({ consumer, resource: provider, key, identity: context, owner });
    return [{ do: 'create', key, object }];
  }
  if (ownershipOf(copy, consumer, context, facts.key) === 'foreign') {
    return [{ do: 'report', problem: notACopy(key) }];
  }
  if (isCopyDeleting || isDeleting(copy)) return [{ do: 'wait', missing: `the end of ${key} in the provider` }];
  const actions: ObjectAction[] = [];
  if (inexact !== undefined) actions.push(inexactProblem(inexact, 'its copy keeps what it has there'));
  const update = copyPatch(consumer, copy, context);
  // Half a change might mean something else.
  if (update && inexactNumber(update) === undefined) actions.push({ do: 'update', key, patch: update });
  const mark = addFinalizerPatch(consumer, copy);
  if (mark) actions.push({ do: 'addFinalizer', patch: mark });
  const inexactStatus = inexactNumber(own(copy.object, 'status'), 'status');
  if (inexactStatus !== undefined) actions.push(inexactProblem(inexactStatus, 'it does not come down'));
  const status = statusPatch(consumer, copy);
  if (status) actions.push(context.statusSubresource ? { do: 'status', patch: status } : noStatus(provider));
  return actions;
}

const removeFinalizer = (consumer: SyncedObject): ObjectAction => ({
  do: 'removeFinalizer',
  patch: removeFinalizerPatch(consumer),
});

const notACopy = (key: string): string =>
  `in the provider ${JSON.stringify(key)} exists already and is not a copy of ours; it is left alone. Use another name, or have that object removed`;

/** Programs that read JSON as we do would lose it without a word. */
const inexactProblem = (path: string, what: string): ObjectAction => ({
  do: 'report',
  problem: `${path} is a whole number beyond 2^53, which cannot be copied without being changed, so ${what}. Use a smaller one, or a string if the kind allows it`,
});

const noStatus = ({ version, kind }: Resource): ObjectAction => ({
  do: 'report',
  problem: `its status cannot be written: version ${version} of ${kind} has no status subresource. Ask the provider to add one`,
});
