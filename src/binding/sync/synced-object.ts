import { clusterNamespaceAnnotation, syncerFinalizer } from '../../api/binding/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import type { Projected } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { lastApplied } from '../stores/common-view.ts';

/** An object that the konnector syncs or follows, without managedFields and kubectl's last-applied-configuration. */
export interface SyncedObject extends Projected {
  /** Of a provider object that is not a copy for this consumer: only `apiVersion`, `kind`, and `metadata`. */
  readonly object: KubeObject;
}

/** Reduces an object to what a store keeps. */
export type Projection = (object: KubeObject) => SyncedObject;

/** Reduces an object of either cluster. `uid` and `resourceVersion` are empty if the object has none. */
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

/** By session, because watches share a store only if their projections are identical. */
const copyProjections = new WeakMap<ProviderSession, Projection>();

/** The projection of provider objects. Returns the same function for each call with a session. */
export function copyProjection(session: ProviderSession): Projection {
  const existing = copyProjections.get(session);
  if (existing) return existing;
  const { clusterNamespace } = session;
  const projection: Projection = (object) => {
    const view = projectObject(object);
    if (annotationOf(view, clusterNamespaceAnnotation) === clusterNamespace) return view;
    const { apiVersion, kind, metadata } = view.object;
    return { ...view, object: { apiVersion, kind, metadata } };
  };
  copyProjections.set(session, projection);
  return projection;
}

/** The annotation; undefined if it is absent or no string, because a provider may send any JSON. */
export function annotationOf({ object }: SyncedObject, name: string): string | undefined {
  const value = own(own(object.metadata, 'annotations'), name);
  return typeof value === 'string' ? value : undefined;
}

/** Whether the object has a deletionTimestamp. */
export const isDeleting = ({ object }: SyncedObject): boolean => object.metadata.deletionTimestamp !== undefined;

export const hasSyncerFinalizer = ({ object }: SyncedObject): boolean =>
  object.metadata.finalizers?.includes(syncerFinalizer) ?? false;
