import { clusterNamespaceAnnotation, syncerFinalizer } from '../../api/binding/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import type { Projected } from '../../kube/store.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { lastApplied } from '../stores/common-view.ts';

/** An object of a bound kind, on either side, without managedFields and kubectl's last-applied-configuration. */
export interface SyncedObject extends Projected {
  /** Only the metadata, if it is a provider object that is no copy for this consumer. */
  readonly object: KubeObject;
}

export type Projection = (object: KubeObject) => SyncedObject;

/** The projection of consumer objects. */
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

const copyProjections = new WeakMap<ProviderSession, Projection>();

/** The projection of provider objects. Each session has one function, so that its watches of a kind are shared. */
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

export function annotationOf({ object }: SyncedObject, name: string): string | undefined {
  const value = own(own(object.metadata, 'annotations'), name);
  return typeof value === 'string' ? value : undefined;
}

export const isDeleting = ({ object }: SyncedObject): boolean => object.metadata.deletionTimestamp !== undefined;

/** Whether the consumer object has our finalizer. */
export const hasSyncerFinalizer = ({ object }: SyncedObject): boolean =>
  object.metadata.finalizers?.includes(syncerFinalizer) ?? false;
