import { execAccessRequests } from '../../api/access/exec-access.ts';
import { childNameSuffix, planHashAnnotation, requestLabel } from '../../api/access/names.ts';
import { podAccessRequests } from '../../api/access/pod-access.ts';
import { apiVersionOf, type KubeObject, keyOf } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import type { ChildView, MadeFor } from './views.ts';

const requestResources = [podAccessRequests, execAccessRequests];

/**
 * The request that an object was made for, if it carries all our marks: the label, the plan's hash, and the request as its
 * controller. Deleting a request with `Orphan` takes the last one away; the name that we give tells then.
 */
export function madeFor({ metadata }: KubeObject): MadeFor | undefined {
  const uid = metadata.labels?.[requestLabel];
  if (!uid || metadata.annotations?.[planHashAnnotation] === undefined) return undefined;
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (!controller) return metadata.name.endsWith(`-${uid.slice(0, 8)}${childNameSuffix}`) ? { uid } : undefined;
  const { apiVersion, kind, name } = controller;
  const isRequest = requestResources.some((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
  return isRequest && controller.uid === uid ? { uid, owner: { kind, name } } : undefined;
}

/** A Role or RoleBinding that carries all our marks; anything else is left out. */
export function viewChild(object: KubeObject): ChildView | undefined {
  const { uid, resourceVersion, namespace, name } = object.metadata;
  const request = madeFor(object);
  if (!uid || !resourceVersion || !namespace || !request) return undefined;
  const leaving = object.metadata.deletionTimestamp !== undefined && !letsIn(object);
  return { key: keyOf({ namespace, name }), uid, resourceVersion, namespace, name, madeFor: request, leaving };
}

/** Of the two, only a RoleBinding does, as long as it has subjects. */
function letsIn(object: KubeObject): boolean {
  const subjects = own(object, 'subjects');
  return Array.isArray(subjects) && subjects.length > 0;
}
