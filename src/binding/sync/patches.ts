import {
  bindGroup,
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  copyOfAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../api/binding/names.ts';
import { apiVersionOf, type KubeObject, nameOf, type OwnerReference, type Resource } from '../../api/object.ts';
import { exactPart } from '../../kit/inexact-number.ts';
import { isRecord, type JsonObject, own } from '../../kit/json-value.ts';
import { type BindingIdentity, copyOfValue } from './ownership.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

// Each merge patch contains the uid of its object. If the object was deleted and another one has its name now, the API server answers 422
// (`isReplaced`), or 409 if the patch also has a resourceVersion. `StatusPatch` is an exception.

interface NewCopy {
  readonly consumer: SyncedObject;
  /** The provider's resource of the kind. */
  readonly resource: Resource;
  /** Namespace and name of the copy in the provider. */
  readonly key: string;
  readonly identity: BindingIdentity;
  /** Reference to the provider object that owns the copy; absent if none does. */
  readonly owner?: OwnerReference | undefined;
}

/** Builds the provider object to create. Labels, and annotations outside kube-bind's group, are copied on creation only. */
export function newCopy({ consumer, resource, key, identity, owner }: NewCopy): KubeObject {
  const { labels, annotations = {} } = consumer.object.metadata;
  const others = Object.entries(annotations).filter(([name]) => !name.startsWith(`${bindGroup}/`));
  return {
    ...Object.fromEntries(syncedFields(consumer.object)),
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      ...nameOf(key),
      ...(labels ? { labels } : {}),
      annotations: {
        ...Object.fromEntries(others),
        ...identityAnnotations(consumer, identity),
        ...originAnnotations(consumer, identity),
      },
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
  };
}

/**
 * The merge patch that updates the copy: the differing kube-bind annotations, and the differing fields except metadata and status. Undefined
 * if none differs. The patch also sets {@link copyOfAnnotation}. That annotation alone causes no patch: another konnector does not set it,
 * so after a take-over from one, the server would write all copies at once.
 */
export function copyPatch(consumer: SyncedObject, copy: SyncedObject, identity: BindingIdentity): object | undefined {
  const fields = mergePatch(
    Object.fromEntries(syncedFields(copy.object)),
    Object.fromEntries(syncedFields(consumer.object)),
  );
  const annotations = identityAnnotations(consumer, identity);
  if (fields === undefined && annotationPatch(copy, annotations) === undefined) return undefined;
  const metadata = annotationPatch(copy, { ...annotations, ...originAnnotations(consumer, identity) });
  return { ...(fields ?? {}), metadata: { uid: copy.uid, ...metadata } };
}

/**
 * The merge patch that lets a stale copy name this consumer object, so that the server can then delete it as the copy of this object. The
 * patch sets only the kube-bind annotations, without {@link copyOfAnnotation}. If they are current, the patch contains only the uid.
 */
export function identityAnnotationsPatch(
  consumer: SyncedObject,
  copy: SyncedObject,
  identity: BindingIdentity,
): object {
  return { metadata: { uid: copy.uid, ...annotationPatch(copy, identityAnnotations(consumer, identity)) } };
}

/**
 * The merge patch that adds the finalizer `kubebind.io/syncer` and both `provider-*` annotations. Undefined if all are current. If
 * another client has changed the object meanwhile, the API server answers a patch that adds the finalizer with 409.
 */
export function addFinalizerPatch(consumer: SyncedObject, copy: SyncedObject): object | undefined {
  const { finalizers = [] } = consumer.object.metadata;
  const annotations = annotationPatch(consumer, {
    [providerNamespaceAnnotation]: copy.object.metadata.namespace ?? '',
    [providerUidAnnotation]: copy.uid,
  });
  if (!finalizers.includes(syncerFinalizer)) {
    return { metadata: { ...finalizersPatch(consumer, [...finalizers, syncerFinalizer]), ...annotations } };
  }
  return annotations && { metadata: { uid: consumer.uid, ...annotations } };
}

/**
 * The merge patch that removes the finalizer `kubebind.io/syncer`. The API server answers 409 if another client has changed the object
 * meanwhile.
 */
export function removeFinalizerPatch(consumer: SyncedObject): object {
  const { finalizers = [] } = consumer.object.metadata;
  return {
    metadata: finalizersPatch(
      consumer,
      finalizers.filter((finalizer) => finalizer !== syncerFinalizer),
    ),
  };
}

/**
 * A merge patch of the status. The API server ignores the uid in it, so the sender adds the resourceVersion. Then the API server answers
 * 409 if another object has the name.
 */
export interface StatusPatch {
  readonly metadata: { readonly uid: string };
  readonly status: unknown;
}

/**
 * The merge patch that turns the consumer's status into the copy's. It omits members with an integer between 2^53 and 2^63, which JavaScript
 * may not represent exactly (`exactPart`). Undefined if no other member differs.
 */
export function statusPatch(consumer: SyncedObject, copy: SyncedObject): StatusPatch | undefined {
  const status = exactPart(mergePatch(own(consumer.object, 'status'), own(copy.object, 'status')));
  return status === undefined ? undefined : { metadata: { uid: consumer.uid }, status };
}

/**
 * The patch replaces the whole list. With its resourceVersion, the API server answers 409 if another client has changed the list meanwhile.
 */
function finalizersPatch({ uid, resourceVersion }: SyncedObject, finalizers: readonly string[]) {
  return { uid, resourceVersion, finalizers };
}

function identityAnnotations(consumer: SyncedObject, { clusterNamespace }: BindingIdentity): Record<string, string> {
  return {
    [clusterNamespaceAnnotation]: clusterNamespace,
    [consumerNamespaceAnnotation]: consumer.object.metadata.namespace ?? '',
    [consumerUidAnnotation]: consumer.uid,
  };
}

function originAnnotations(consumer: SyncedObject, { bindingUid }: BindingIdentity): Record<string, string> {
  const value = copyOfValue(bindingUid, consumer.key);
  return value === undefined ? {} : { [copyOfAnnotation]: value };
}

function annotationPatch(
  view: SyncedObject,
  wanted: Record<string, string>,
): { annotations: Record<string, string> } | undefined {
  const missing = Object.entries(wanted).filter(([name, value]) => annotationOf(view, name) !== value);
  return missing.length === 0 ? undefined : { annotations: Object.fromEntries(missing) };
}

const notSynced = new Set(['apiVersion', 'kind', 'metadata', 'status']);

/** The fields that the server copies to the provider, as pairs of name and value: all except apiVersion, kind, metadata, and status. */
export const syncedFields = (object: KubeObject): [string, unknown][] =>
  Object.entries(object).filter(([field]) => !notSynced.has(field));

/**
 * The JSON merge patch (RFC 7396) that turns `from` into `to`; undefined if they are equal. A member that is null counts as absent,
 * because a merge patch cannot set null. So the server does not sync the null of a field with `nullable: true`.
 */
export function mergePatch(from: unknown, to: unknown): unknown {
  if (isAbsent(to)) return isAbsent(from) ? undefined : null;
  if (!isRecord(to) || !isRecord(from)) return isSame(from, to) ? undefined : to;
  const members: [string, unknown][] = [];
  for (const name of Object.keys(to)) {
    const change = mergePatch(own(from, name), to[name]);
    if (change !== undefined) members.push([name, change]);
  }
  for (const name of Object.keys(from)) {
    if (!Object.hasOwn(to, name) && !isAbsent(from[name])) members.push([name, null]);
  }
  // An assignment would lose a member called __proto__.
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** Whether two JSON values are equal. A null counts as absent. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b || (isAbsent(a) && isAbsent(b))) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(item, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  return containedIn(a, b) && Object.keys(b).every((name) => Object.hasOwn(a, name) || isAbsent(b[name]));
}

function containedIn(a: JsonObject, b: JsonObject): boolean {
  return Object.keys(a).every((name) => isSame(a[name], own(b, name)));
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
