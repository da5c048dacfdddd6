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

// Each merge patch has the uid of its object: if another one has its name now, the API server
// answers 422 (`isReplaced`), or 409 with a resourceVersion. `StatusPatch` is an exception.

interface NewCopy {
  readonly consumer: SyncedObject;
  readonly resource: Resource;
  readonly key: string;
  readonly identity: BindingIdentity;
  readonly owner?: OwnerReference | undefined;
}

/** Labels, and annotations outside kube-bind's group, are copied only here. */
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
 * {@link copyOfAnnotation} alone causes no patch: after a take-over from another konnector, all
 * copies would be written at once.
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

/** Lets a stale copy name this consumer object, so that it can be deleted as its copy. */
export function identityAnnotationsPatch(
  consumer: SyncedObject,
  copy: SyncedObject,
  identity: BindingIdentity,
): object {
  return { metadata: { uid: copy.uid, ...annotationPatch(copy, identityAnnotations(consumer, identity)) } };
}

/** With both `provider-*` annotations. 409 if another client has changed the object. */
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

/** 409 if another client has changed the object. */
export function removeFinalizerPatch(consumer: SyncedObject): object {
  const { finalizers = [] } = consumer.object.metadata;
  return {
    metadata: finalizersPatch(
      consumer,
      finalizers.filter((finalizer) => finalizer !== syncerFinalizer),
    ),
  };
}

/** The API server ignores the uid here, so the sender adds the resourceVersion. */
export interface StatusPatch {
  readonly metadata: { readonly uid: string };
  readonly status: unknown;
}

/** Without integers between 2^53 and 2^63, which JavaScript may not hold (`exactPart`). */
export function statusPatch(consumer: SyncedObject, copy: SyncedObject): StatusPatch | undefined {
  const status = exactPart(mergePatch(own(consumer.object, 'status'), own(copy.object, 'status')));
  return status === undefined ? undefined : { metadata: { uid: consumer.uid }, status };
}

/** Replaces the whole list, so it needs the resourceVersion. */
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

export const syncedFields = (object: KubeObject): [string, unknown][] =>
  Object.entries(object).filter(([field]) => !notSynced.has(field));

/** RFC 7396. It cannot set null, so a null counts as absent, also with `nullable: true`. */
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

/** A null counts as absent. */
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
