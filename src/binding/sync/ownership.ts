import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
} from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

/** What a provider object is, in the place of the copy of a consumer object. */
export type Ownership =
  /** Of the provider, another consumer, or another namespace. Never written. */
  | 'foreign'
  | 'current'
  /** Of this consumer, for no or an earlier object of this name. Its annotations are updated. */
  | 'stale'
  /** Of a deleted object, proven to be created for it through this binding. */
  | 'orphan'
  /** Without that proof: deleted only if the deletion of its object was observed. */
  | 'unknown';

export interface BindingIdentity {
  readonly clusterNamespace: string;
  readonly bindingUid?: string | undefined;
}

/** A provider may use one service namespace for two consumer namespaces: that is foreign. */
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

/** While the binding's uid is not known, every {@link copyOfAnnotation} counts as other. */
export function hasOtherOrigin(copy: SyncedObject, { bindingUid }: BindingIdentity, consumerKey: string): boolean {
  const value = annotationOf(copy, copyOfAnnotation);
  return value !== undefined && value !== copyOfValue(bindingUid, consumerKey);
}

/** It has the name, because a clone of a copy has the same annotations. */
export const copyOfValue = (bindingUid: string | undefined, consumerKey: string): string | undefined =>
  bindingUid === undefined ? undefined : `${bindingUid}/${consumerKey}`;
