import { consumerUidAnnotation, providerNamespaceAnnotation } from '../../api/binding/names.ts';
import type { KubeObject, OwnerReference, Resource } from '../../api/object.ts';
import { inexactNumber } from '../../kit/inexact-number.ts';
import { own } from '../../kit/json-value.ts';
import type { SyncMode } from '../sync-engine/kind.ts';
import type { Place } from './isolation.ts';
import { isOfAnother, type Origin, type Ownership, ownershipOf } from './ownership.ts';
import { copyPatch, markPatch, newCopy, stampPatch, statusPatch, synced, unmarkPatch } from './patches.ts';
import { annotationOf, isDeleting, isHeld, type SyncedObject } from './synced-object.ts';

/** One key as it is known now: what the watches have shown, and our own writes that they have not shown yet. */
export interface Situation {
  readonly mode: SyncMode;
  /** Of the consumer: `namespace/name`, or `name` of what is cluster-scoped. */
  readonly key: string;
  /** Undefined: it is known that there is none. */
  readonly consumer: SyncedObject | undefined;
  /** The consumer object that was seen being deleted under this name. */
  readonly seenDeleted: string | undefined;
  readonly place: Place;
  readonly copy: SyncedObject | undefined;
  /** Its deletion has been asked for. */
  readonly copyGoing: boolean;
  /** It was seen to go, or looked for in vain: that the watch does not show a copy is not enough to let go of the finalizer. */
  readonly copyGone: boolean;
}

/** What is the same for all keys. */
export interface Terms extends Origin {
  readonly provider: Resource;
  readonly owner: OwnerReference | undefined;
  /** Whether the consumer's kind has `/status`. */
  readonly statusSubresource: boolean;
}

export type Action =
  | { readonly do: 'requestNamespace'; readonly namespace: string }
  | { readonly do: 'create'; readonly key: string; readonly object: KubeObject }
  | { readonly do: 'update'; readonly key: string; readonly patch: object }
  | { readonly do: 'mark'; readonly patch: object }
  | { readonly do: 'status'; readonly patch: object }
  | { readonly do: 'deleteCopy'; readonly key: string; readonly uid: string; readonly inferred: boolean }
  | { readonly do: 'lookForCopy'; readonly key: string }
  | { readonly do: 'unmark'; readonly patch: object }
  | { readonly do: 'wait'; readonly missing: string }
  | { readonly do: 'complain'; readonly problem: string };

/** The place of the copy: the one that the name maps to, or, while that is not known, the one we wrote down. */
export function copyKeyOf(place: Place, consumer: SyncedObject | undefined): string | undefined {
  if (place.kind === 'at') return place.key;
  if (place.kind === 'impossible' || !consumer) return undefined;
  const namespace = annotationOf(consumer, providerNamespaceAnnotation);
  return namespace && `${namespace}/${consumer.object.metadata.name}`;
}

/** What brings both sides into step, in order. After `requestNamespace`, `create`, `lookForCopy` and a stamp it is asked again. */
export function plan(situation: Situation, terms: Terms): readonly Action[] {
  const { mode, consumer } = situation;
  if (!consumer) return withoutConsumer(situation, terms);
  if (isDeleting(consumer)) return goingDown(situation, consumer, terms);
  return mode === 'drain' ? [] : inStep(situation, consumer, terms);
}

/**
 * Only what is proved to be of an object that is gone: that was seen going, or the copy says that it was made for it through this very
 * binding. Ages prove nothing, as the two clusters have clocks of their own.
 */
function withoutConsumer(situation: Situation, terms: Terms): readonly Action[] {
  const { copy, copyGoing, place, seenDeleted } = situation;
  const key = copyKeyOf(place, undefined);
  if (!copy || key === undefined || copyGoing || isDeleting(copy)) return [];
  const ownership = ownershipOf(copy, undefined, terms, situation.key);
  const wasSeen = seenDeleted !== undefined && annotationOf(copy, consumerUidAnnotation) === seenDeleted;
  if (ownership !== 'orphan' && !(ownership === 'unknown' && wasSeen)) return [];
  return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: !wasSeen }];
}

function goingDown(situation: Situation, consumer: SyncedObject, terms: Terms): readonly Action[] {
  const { copy, copyGoing, copyGone, place } = situation;
  const key = copyKeyOf(place, consumer);
  const letGo = isHeld(consumer) ? [unmark(consumer)] : [];
  if (key === undefined) return letGo;
  if (!copy) return copyGone || letGo.length === 0 ? letGo : [{ do: 'lookForCopy', key }];
  const ownership: Ownership = ownershipOf(copy, consumer, terms, situation.key);
  if (ownership === 'ours') {
    if (copyGoing || isDeleting(copy)) return [{ do: 'wait', missing: `the end of ${key} in the provider` }];
    return [{ do: 'deleteCopy', key, uid: copy.uid, inferred: false }];
  }
  // Without our finalizer it never was what this copy is of; and what it is the copy of now, another binding has made it.
  if (ownership !== 'stale' || letGo.length === 0 || isOfAnother(copy, terms, situation.key)) return letGo;
  return [{ do: 'update', key, patch: stampPatch(consumer, copy, terms) }];
}

function inStep(situation: Situation, consumer: SyncedObject, terms: Terms): readonly Action[] {
  const { copy, copyGoing, place } = situation;
  if (place.kind === 'impossible') return [{ do: 'complain', problem: place.problem }];
  if (place.kind === 'unmapped') {
    const { namespace } = place;
    if (place.requested) return [{ do: 'wait', missing: `the provider's namespace for ${namespace}` }];
    return [{ do: 'requestNamespace', namespace }];
  }
  const { key, closing } = place;
  const { provider, owner } = terms;
  const inexact = inexactNumber(Object.fromEntries(synced(consumer.object)));
  if (!copy) {
    if (inexact !== undefined) return [changed(inexact, 'it is not copied')];
    if (closing) return [{ do: 'wait', missing: `the end of the provider's namespace of ${key}` }];
    const object = newCopy({ consumer, resource: provider, key, origin: terms, owner });
    return [{ do: 'create', key, object }];
  }
  if (ownershipOf(copy, consumer, terms, situation.key) === 'foreign') {
    return [{ do: 'complain', problem: taken(key) }];
  }
  if (copyGoing || isDeleting(copy)) return [{ do: 'wait', missing: `the end of ${key} in the provider` }];
  const actions: Action[] = [];
  if (inexact !== undefined) actions.push(changed(inexact, 'its copy keeps what it has there'));
  const update = copyPatch(consumer, copy, terms);
  // Half a change might mean something else.
  if (update && inexactNumber(update) === undefined) actions.push({ do: 'update', key, patch: update });
  const mark = markPatch(consumer, copy);
  if (mark) actions.push({ do: 'mark', patch: mark });
  const inexactStatus = inexactNumber(own(copy.object, 'status'), 'status');
  if (inexactStatus !== undefined) actions.push(changed(inexactStatus, 'it does not come down'));
  const status = statusPatch(consumer, copy);
  if (status) actions.push(terms.statusSubresource ? { do: 'status', patch: status } : noStatus(provider));
  return actions;
}

const unmark = (consumer: SyncedObject): Action => ({ do: 'unmark', patch: unmarkPatch(consumer) });

const taken = (key: string): string =>
  `in the provider ${JSON.stringify(key)} exists already and is not a copy of ours; it is left alone. Use another name, or have that object removed`;

/** Programs that read JSON as we do would lose it without a word. */
const changed = (path: string, what: string): Action => ({
  do: 'complain',
  problem: `${path} is a whole number beyond 2^53, which cannot be copied without being changed, so ${what}. Use a smaller one, or a string if the kind allows it`,
});

const noStatus = ({ version, kind }: Resource): Action => ({
  do: 'complain',
  problem: `its status cannot be written: version ${version} of ${kind} has no status subresource. Ask the provider to add one`,
});
