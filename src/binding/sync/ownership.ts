import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
} from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

/** Classifies the provider object at the key where the copy of a consumer object belongs. */
export type Ownership =
  /**
   * An object of another consumer or of the provider, or the copy of an object in another consumer namespace. The server never writes it.
   */
  | 'foreign'
  /** The copy of this consumer object. */
  | 'current'
  /** A copy for this consumer that names no consumer object, or an earlier object of the same name. Its annotations must be updated. */
  | 'stale'
  /** A copy of a deleted consumer object, with proof that it was created for that object through this binding. */
  | 'orphan'
  /**
   * A copy without a consumer object and without the proof that `orphan` needs. Another konnector may have created it, perhaps for another
   * binding or name. The server deletes it only if the deletion of the consumer object that it names was observed.
   */
  | 'unknown';

/** Identifies the binding to which copies belong. */
export interface BindingIdentity {
  readonly clusterNamespace: string;
  /** uid of the APIServiceBinding; undefined while it is not known. */
  readonly bindingUid?: string | undefined;
}

/**
 * Classifies `copy`. `consumerObject` is the object at `consumerKey`; undefined if it does not exist. A copy that names another uid and
 * another consumer namespace is foreign, because a provider may use one service namespace for two consumer namespaces.
 */
export function ownershipOf(
  copy: SyncedObject,
  consumerObject: SyncedObject | undefined,
  identity: BindingIdentity,
  consumerKey: string,
): Ownership {
  if (annotationOf(copy, clusterNamespaceAnnotation) !== identity.clusterNamespace) return 'foreign';
  const uid = annotationOf(copy, consumerUidAnnotation);
  if (consumerObject && uid === consumerObject.uid) return 'current';
  const namespace = annotationOf(copy, consumerNamespaceAnnotation);
  if (namespace && namespace !== nameOf(consumerKey).namespace) return 'foreign';
  if (consumerObject) return 'stale';
  const expectedCopyOf = copyOfValue(identity.bindingUid, consumerKey);
  const isProven = expectedCopyOf !== undefined && annotationOf(copy, copyOfAnnotation) === expectedCopyOf;
  return uid && isProven ? 'orphan' : 'unknown';
}

/** Whether {@link copyOfAnnotation} names another binding or object. While the binding's uid is not known, every value counts as other. */
export function hasOtherOrigin(copy: SyncedObject, { bindingUid }: BindingIdentity, consumerKey: string): boolean {
  const value = annotationOf(copy, copyOfAnnotation);
  return value !== undefined && value !== copyOfValue(bindingUid, consumerKey);
}

/**
 * The expected value of {@link copyOfAnnotation}; undefined while the binding's uid is not known. It contains the name as well, because a
 * clone of a copy has the same annotations.
 */
export const copyOfValue = (bindingUid: string | undefined, consumerKey: string): string | undefined =>
  bindingUid === undefined ? undefined : `${bindingUid}/${consumerKey}`;
