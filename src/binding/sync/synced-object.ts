import { clusterNamespaceAnnotation, syncerFinalizer } from '../../api/binding/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import type { Projected } from '../../kube/store.ts';
import { lastApplied } from '../stores/common-view.ts';

/** Without managedFields and kubectl's last-applied-configuration. */
export interface SyncedObject extends Projected {
  /** No copy for this consumer: only `apiVersion`, `kind`, and `metadata`. */
  readonly object: KubeObject;
}

export type Projection = (object: KubeObject) => SyncedObject;

/** `uid` and `resourceVersion` may be empty. */
export function projectObject(object: KubeObject): SyncedObject {
  const { managedFields: _, ...metadata } = object.metadata;
  if (own(metadata.annotations, lastApplied) !== undefined) {
    const { [lastApplied]: __, ...annotations } = metadata.annotations ?? {};
    metadata.annotations = annotations;
  }
  return {
    key: keyOf(metadata),
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    object: { ...object, metadata },
  };
}

export const copyProjection =
  (clusterNamespace: string): Projection =>
  (object) => {
    const view = projectObject(object);
    if (annotationOf(view, clusterNamespaceAnnotation) === clusterNamespace) return view;
    const { apiVersion, kind, metadata } = view.object;
    return { ...view, object: { apiVersion, kind, metadata } };
  };

/** A provider may send any JSON, so it may be no string. */
export function annotationOf({ object }: SyncedObject, name: string): string | undefined {
  const value = own(own(object.metadata, 'annotations'), name);
  return typeof value === 'string' ? value : undefined;
}

export const isDeleting = ({ object }: SyncedObject): boolean => object.metadata.deletionTimestamp !== undefined;

export const hasSyncerFinalizer = ({ object }: SyncedObject): boolean =>
  object.metadata.finalizers?.includes(syncerFinalizer) ?? false;
