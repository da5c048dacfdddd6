import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
} from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

/** Whose a provider object is that stands where the copy of a consumer object would. */
export type Ownership =
  /** Another consumer's, or made in the provider: never touched. */
  | 'foreign'
  /** The copy of this very consumer object. */
  | 'ours'
  /** A copy of ours that tells of no consumer object, or of an earlier one of the same name: its annotations are to be renewed. */
  | 'stale'
  /** A copy of a consumer object that is gone, and provably made for it through this binding. */
  | 'orphan'
  /** Of ours, and there is no consumer object; but it was made by another konnector, through another binding or for another name: left alone. */
  | 'unknown';

/** For whom copies are made. */
export interface BindingIdentity {
  readonly clusterNamespace: string;
  /** uid of the APIServiceBinding; undefined while it is not known. */
  readonly bindingUid?: string | undefined;
}

/**
 * `twin` is the consumer object under `consumerKey`, undefined when there is none. A copy that tells of another namespace is not of that
 * name: a provider may have one namespace stand for two of ours.
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

/** Whether it says that it was made through another binding, or for another name. */
export function isMadeByAnother(copy: SyncedObject, { bindingUid }: BindingIdentity, consumerKey: string): boolean {
  const said = annotationOf(copy, copyOfAnnotation);
  return said !== undefined && said !== copyOfValue(bindingUid, consumerKey);
}

/** Value of {@link copyOfAnnotation}: both the binding and the name, since who clones a copy clones its annotations. */
export const copyOfValue = (bindingUid: string | undefined, consumerKey: string): string | undefined =>
  bindingUid === undefined ? undefined : `${bindingUid}/${consumerKey}`;
