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

/** The request that an object was made for. */
export interface MadeFor {
  readonly uid: string;
  /** Absent once the request was deleted with `Orphan`. */
  readonly owner?: { readonly kind: string; readonly name: string };
}

/**
 * The request that an object was made for, if it carries all our marks: the label, the plan's hash, and the request as its
 * controller. Deleting a request with `Orphan` takes the last one away; the name that we give tells then.
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

/** The owner that controls the object; there is at most one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find((owner) => owner.controller === true);

/** A Role or RoleBinding of ours. */
export interface ChildView extends Placed {
  readonly madeFor: MadeFor;
  /** Is on its way out and gives nothing any more, whoever holds it: there is nothing left to close. */
  readonly terminating: boolean;
}

/** A Role or RoleBinding that carries all our marks; anything else is left out. */
export function viewChild(object: KubeObject): ChildView | undefined {
  const at = placed(object);
  const request = madeFor(object);
  if (!at || !request) return undefined;
  // Of the two, only a RoleBinding lets anybody in, as long as it has subjects.
  const letsIn = listIn(object, 'subjects').length > 0;
  return { ...at, madeFor: request, terminating: object.metadata.deletionTimestamp !== undefined && !letsIn };
}

/** What the access half keeps of a Pod. */
export interface PodView extends Placed {
  readonly labels: Readonly<Record<string, string>>;
  /** Without `kubectl.kubernetes.io/last-applied-configuration`, which would be most of the memory. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  readonly ready: boolean;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Is being deleted, with no more time to end in than we give: there is nothing left to close. */
  readonly terminating: boolean;
  /** Set when it is one of ours. */
  readonly madeFor?: MadeFor;
  /** What made it and keeps it: a ReplicaSet, a Job; absent when nothing does. */
  readonly controller?: { readonly kind: string; readonly name: string; readonly uid: string };
  /** Why it is not ready, in one line, for conditions; empty when ready. */
  readonly waiting: string;
}

/** Cut, because an owner may have any name. */
const ownerView = ({ kind, name, uid }: OwnerReference) => ({ kind: text(kind), name: text(name), uid: text(uid) });

/** A manifest inside an annotation: most of a Pod's memory, and nobody's access command names it. */
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

/** `container shell: ImagePullBackOff: …`, or as near to it as the status tells; without counts and times, which would change for ever. */
function waitingReason(status: unknown): string {
  // The kubelet goes back and forth between ErrImagePull and ImagePullBackOff; each change would be a status write.
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

/** What the access half keeps of a workload that templates point to. */
export interface WorkloadView extends Placed {
  readonly apiVersion: string;
  readonly kind: string;
  readonly selector: LabelSelector | undefined;
  /** The PodTemplateSpec as the API gave it; treated as hostile, never changed in place. */
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

/** An object that acts on pods by their labels. */
export interface SelectorView extends Placed {
  readonly kind: SelectorReference['kind'];
  readonly selector: LabelSelector | undefined;
  /** Of NetworkPolicies: what they select may only reach what policies allow. */
  readonly isolatesEgress: boolean;
}

/** By kind: where the selector is, as a LabelSelector. A Service without one selects nothing. */
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
    // The API server writes down what policyTypes are by default.
    const isolatesEgress = kind === 'NetworkPolicy' && listIn(object.spec, 'policyTypes').includes('Egress');
    return at && { ...at, kind, selector: selectorOf[kind](object.spec), isolatesEgress };
  };
