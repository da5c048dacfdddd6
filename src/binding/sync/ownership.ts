import { clusterNamespaceAnnotation, consumerUidAnnotation } from '../../api/binding/names.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

/** Whose a provider object is that stands where the copy of a consumer object would. */
export type Ownership =
  /** Another consumer's, or made in the provider: never touched. */
  | 'foreign'
  /** The copy of this very consumer object. */
  | 'ours'
  /** A copy of ours that tells of no consumer object, or of an earlier one of the same name: its annotations are to be renewed. */
  | 'stale'
  /** A copy of ours of a consumer object that is gone. */
  | 'orphan'
  /** Of ours, but it does not tell which consumer object it is the copy of, and there is none: left alone. */
  | 'unknown';

/** `twin` is the consumer object of that name, undefined when there is none. */
export function ownershipOf(copy: SyncedObject, twin: SyncedObject | undefined, clusterNamespace: string): Ownership {
  if (annotationOf(copy, clusterNamespaceAnnotation) !== clusterNamespace) return 'foreign';
  const uid = annotationOf(copy, consumerUidAnnotation);
  if (twin) return uid === twin.uid ? 'ours' : 'stale';
  return uid ? 'orphan' : 'unknown';
}
