import { accesses } from '../../api/access/kinds.ts';
import { childNameSuffix, planHashAnnotation, requestLabel } from '../../api/access/names.ts';
import type { SelectorReference } from '../../api/access/pod-access.ts';
import {
  apiVersionOf,
  type KubeObject,
  type LabelSelector,
  type OwnerReference,
  type Resource,
} from '../../api/object.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';
import { deletionGraceS } from '../../rbac/applier.ts';
import { type Placed, placed } from './access-views.ts';

/** The request that an object was created for. */
export interface MadeFor {
  readonly uid: string;
  /** Absent once the request was deleted with `Orphan`. */
  readonly owner?: { readonly kind: string; readonly name: string };
}

/**
 * The request that an object was created for. The object must carry the label, the plan hash, and the request as its controller. Deleting
 * a request with `Orphan` removes the controller; then the object must have the name that we assign.
 */
function madeFor(object: KubeObject): MadeFor | undefined {
  const { metadata } = object;
  const uid = metadata.labels?.[requestLabel];
  if (!uid || metadata.annotations?.[planHashAnnotation] === undefined) return undefined;
  const controller = controllerOf(object);
  if (!controller) return metadata.name.endsWith(`-${uid.slice(0, 8)}${childNameSuffix}`) ? { uid } : undefined;
  const { apiVersion, kind, name } = controller;
  const isRequest = accesses.some(
    ({ request: { resource } }) => resource.kind === kind && apiVersionOf(resource) === apiVersion,
  );
  return isRequest && controller.uid === uid ? { uid, owner: { kind, name } } : undefined;
}

/** The owner reference with `controller: true`; there is at most one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find((owner) => owner.controller === true);

/** A Role or RoleBinding of a grant. */
export interface ChildView extends Placed {
  readonly madeFor: MadeFor;
  /** Has a deletionTimestamp and gives no access: nothing is left to close, even if a finalizer keeps it. */
  readonly terminating: boolean;
}

/** The projection of a Role or RoleBinding of a grant; undefined for any other. */
export function viewChild(object: KubeObject): ChildView | undefined {
  const at = placed(object);
  const request = madeFor(object);
  if (!at || !request) return undefined;
  // Only a RoleBinding with subjects gives access.
  const letsIn = listIn(object, 'subjects').length > 0;
  return { ...at, madeFor: request, terminating: object.metadata.deletionTimestamp !== undefined && !letsIn };
}

/** The fields of a Pod that the access feature keeps. */
export interface PodView extends Placed {
  readonly labels: Readonly<Record<string, string>>;
  /** Without `kubectl.kubernetes.io/last-applied-configuration`, which would take most of the memory. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly ready: boolean;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Is being deleted with a grace period of at most ours: nothing is left to close. */
  readonly terminating: boolean;
  /** Present if it is the access pod of a request. */
  readonly madeFor?: MadeFor;
  /** Its controller, such as a ReplicaSet or a Job; absent if it has none. */
  readonly controller?: { readonly kind: string; readonly name: string; readonly uid: string };
  /** Why it is not ready, in one line, for conditions; empty when ready. */
  readonly waiting: string;
}

/** Truncates the texts, because an owner reference can hold any. */
const ownerView = ({ kind, name, uid }: OwnerReference) => ({ kind: text(kind), name: text(name), uid: text(uid) });

/** A whole manifest in an annotation: it takes most of a Pod's memory, and access commands have no use for it. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

export function viewPod(object: KubeObject): PodView | undefined {
  const at = placed(object);
  if (!at) return undefined;
  const { labels = {}, annotations = {}, deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  const { [lastApplied]: _, ...kept } = annotations;
  const request = madeFor(object);
  const controller = controllerOf(object);
  const ready = own(conditionOf(object.status, 'Ready'), 'status') === 'True';
  return {
    ...at,
    labels,
    annotations: kept,
    phase: text(own(object.status, 'phase')),
    ready,
    deleting: deletionTimestamp !== undefined,
    terminating: deletionTimestamp !== undefined && deletionGracePeriodSeconds <= deletionGraceS,
    ...(request ? { madeFor: request } : {}),
    ...(controller ? { controller: ownerView(controller) } : {}),
    waiting: ready ? '' : waitingReason(object.status),
  };
}

/** `container shell: ImagePullBackOff`, or as much as the status shows; without counts and times, which would change at every update. */
function waitingReason(status: unknown): string {
  // The kubelet alternates between ErrImagePull and ImagePullBackOff, and each change would be a status write.
  for (const container of [...listIn(status, 'initContainerStatuses'), ...listIn(status, 'containerStatuses')]) {
    const state = own(container, 'state');
    const stuck = own(state, 'waiting') ?? own(state, 'terminated');
    if (stuck === undefined || own(stuck, 'reason') === 'Completed') continue;
    return `container ${text(own(container, 'name'))}: ${(text(own(stuck, 'reason')) || 'not running').replace(/^ErrImagePull$/, 'ImagePullBackOff')}`;
  }
  const phase = text(own(status, 'phase'));
  if (phase === 'Failed' || phase === 'Succeeded') {
    return `the Pod has ended (${text(own(status, 'reason')) || phase}); delete this request and make another`;
  }
  const scheduled = conditionOf(status, 'PodScheduled');
  if (own(scheduled, 'status') === 'False') return `not scheduled: ${text(own(scheduled, 'message'))}`;
  return `the Pod is ${phase || 'Pending'}`;
}

const conditionOf = (status: unknown, type: string): unknown =>
  listIn(status, 'conditions').find((condition) => own(condition, 'type') === type);

const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 512) : '');

/** The fields of a workload that the access feature keeps. */
export interface WorkloadView extends Placed {
  readonly apiVersion: string;
  readonly kind: string;
  readonly selector: LabelSelector | undefined;
  /** The PodTemplateSpec as the API server returned it; untrusted, never changed in place. */
  readonly podTemplate: Readonly<Record<string, unknown>>;
}

/** List items come without kind, so the store's resource names it. */
export const viewWorkload =
  (resource: Resource) =>
  (object: KubeObject): WorkloadView | undefined => {
    const at = placed(object);
    if (!at) return undefined;
    const podTemplate = own(object.spec, 'template');
    return {
      ...at,
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      selector: asSelector(own(object.spec, 'selector')),
      podTemplate: isRecord(podTemplate) ? podTemplate : {},
    };
  };

/** An object that selects pods by labels. */
export interface SelectorView extends Placed {
  readonly kind: SelectorReference['kind'];
  readonly selector: LabelSelector | undefined;
  /** For a NetworkPolicy: the pods that it selects can reach only what policies allow. */
  readonly isolatesEgress: boolean;
}

/** Reads the selector of each kind as a LabelSelector. A Service without a selector selects nothing. */
const selectorOf: Readonly<Record<SelectorView['kind'], (spec: unknown) => LabelSelector | undefined>> = {
  Service: (spec) => {
    const matchLabels = own(spec, 'selector');
    return isRecord(matchLabels) ? ({ matchLabels } as LabelSelector) : undefined;
  },
  PodDisruptionBudget: (spec) => asSelector(own(spec, 'selector')),
  NetworkPolicy: (spec) => asSelector(own(spec, 'podSelector')),
};

const asSelector = (value: unknown): LabelSelector | undefined =>
  isRecord(value) ? (value as LabelSelector) : undefined;

/** List items come without kind, so the store's resource names it. */
export const viewSelector =
  (kind: SelectorView['kind']) =>
  (object: KubeObject): SelectorView | undefined => {
    const at = placed(object);
    // The API server defaults policyTypes, so they are always present.
    const isolatesEgress = kind === 'NetworkPolicy' && listIn(object.spec, 'policyTypes').includes('Egress');
    return at && { ...at, kind, selector: selectorOf[kind](object.spec), isolatesEgress };
  };
