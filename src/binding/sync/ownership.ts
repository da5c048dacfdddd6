import {
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
} from '../../api/binding/names.ts';
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

/**
 * `twin` is the consumer object of that name, undefined when there is none; `namespace` the one of the consumer that the name is in. A copy
 * that tells of another one is not of that name: a provider may have one namespace stand for two of ours.
 */
export function ownershipOf(
  copy: SyncedObject,
  twin: SyncedObject | undefined,
  clusterNamespace: string,
  namespace: string | undefined,
): Ownership {
  if (annotationOf(copy, clusterNamespaceAnnotation) !== clusterNamespace) return 'foreign';
  const uid = annotationOf(copy, consumerUidAnnotation);
  if (twin && uid === twin.uid) return 'ours';
  if (
    annotationOf(copy, consumerNamespaceAnnotation) &&
    annotationOf(copy, consumerNamespaceAnnotation) !== namespace
  ) {
    return 'foreign';
  }
  if (twin) return 'stale';
  return uid ? 'orphan' : 'unknown';
}
