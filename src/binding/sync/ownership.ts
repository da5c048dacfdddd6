import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
} from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

/** Who owns the provider object under the key of a consumer object's copy. */
export type Ownership =
  /** Another consumer's object, or one created in the provider. Never written. */
  | 'foreign'
  /** The copy of this consumer object. */
  | 'ours'
  /** A copy made for this consumer that names no consumer object, or an earlier one of the same name. Its annotations must be updated. */
  | 'stale'
  /** A copy of a deleted consumer object, with proof that it was made for that object through this binding. */
  | 'orphan'
  /** A copy without a consumer object and without that proof: another konnector, binding, or name. Left alone. */
  | 'unknown';

/** Identifies the binding that copies are made for. */
export interface BindingIdentity {
  readonly clusterNamespace: string;
  /** uid of the APIServiceBinding; undefined while it is not known. */
  readonly bindingUid?: string | undefined;
}

/**
 * `twin` is the consumer object under `consumerKey`, undefined if there is none. A copy that names another consumer namespace is
 * foreign, because a provider may use one service namespace for two consumer namespaces.
 */
export function ownershipOf(
  copy: SyncedObject,
  twin: SyncedObject | undefined,
  identity: BindingIdentity,
  consumerKey: string,
): Ownership {
  if (annotationOf(copy, clusterNamespaceAnnotation) !== identity.clusterNamespace) return 'foreign';
  const uid = annotationOf(copy, consumerUidAnnotation);
  if (twin && uid === twin.uid) return 'ours';
  const namespace = annotationOf(copy, consumerNamespaceAnnotation);
  if (namespace && namespace !== nameOf(consumerKey).namespace) return 'foreign';
  if (twin) return 'stale';
  const made = copyOfValue(identity.bindingUid, consumerKey);
  return uid && made !== undefined && annotationOf(copy, copyOfAnnotation) === made ? 'orphan' : 'unknown';
}

/** Whether the copy names another binding or another object as its original. */
export function isMadeByAnother(copy: SyncedObject, { bindingUid }: BindingIdentity, consumerKey: string): boolean {
  const value = annotationOf(copy, copyOfAnnotation);
  return value !== undefined && value !== copyOfValue(bindingUid, consumerKey);
}

/** Value of {@link copyOfAnnotation}. It holds the name as well, because a clone of a copy has the same annotations. */
export const copyOfValue = (bindingUid: string | undefined, consumerKey: string): string | undefined =>
  bindingUid === undefined ? undefined : `${bindingUid}/${consumerKey}`;
