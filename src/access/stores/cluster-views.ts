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
import { parseTime } from '../../kit/clock.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';
import { printable } from '../../kit/printable.ts';
import { shorten } from '../../kit/shorten.ts';
import { deletionGraceS } from '../../rbac/applier.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

export interface RequestRef {
  readonly uid: string;
  /** Absent without a controller, such as after a deletion with the propagation policy `Orphan`. */
  readonly owner?: { readonly kind: string; readonly name: string };
}

/** By label, annotation, and controller; without a controller, the name must be a child's. */
function requestRefOf(object: KubeObject): RequestRef | undefined {
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

/** There is at most one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find((owner) => owner.controller === true);

export interface ChildView extends ViewMetadata {
  readonly requestRef: RequestRef;
  /** Being deleted without subjects: gives no access, even if a finalizer keeps it. */
  readonly nothingToRevoke: boolean;
}

/** Undefined for any Role or RoleBinding that is not of a grant. */
export function viewChild(object: KubeObject): ChildView | undefined {
  const metadata = viewMetadata(object);
  const requestRef = requestRefOf(object);
  if (!metadata || !requestRef) return undefined;
  // Only a RoleBinding with subjects gives access.
  const givesAccess = listIn(object, 'subjects').length > 0;
  return { ...metadata, requestRef, nothingToRevoke: object.metadata.deletionTimestamp !== undefined && !givesAccess };
}

/** The fields of a Pod that the access feature uses. */
export interface PodView extends ViewMetadata {
  readonly labels: Readonly<Record<string, string>>;
  /** Without `kubectl.kubernetes.io/last-applied-configuration`. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly phase: string;
  /** Not while it is being deleted: the kubelet keeps Ready until the containers stop. */
  readonly ready: boolean;
  /** One line, such as `Failed: Evicted: ...`. Absent while the Pod can run. */
  readonly ended?: string;
  readonly deleting: boolean;
  /** Being deleted, with a grace period of at most `deletionGraceS` seconds. */
  readonly nothingToRevoke: boolean;
  /** Epoch ms: when the kubelet stops the Pod at the earliest, by `activeDeadlineSeconds`. */
  readonly deadlineMs?: number;
  /** Only for an access pod. */
  readonly requestRef?: RequestRef;
  /** Such as a ReplicaSet or a Job. */
  readonly controller?: { readonly kind: string; readonly name: string; readonly uid: string };
  /** One line for conditions; empty if the Pod is ready. */
  readonly notReadyReason: string;
}

/** The API server does not limit the length of an owner reference. */
const ownerView = ({ kind, name, uid }: OwnerReference) => ({ kind: text(kind), name: text(name), uid: text(uid) });

/** A whole manifest: most of the memory of a view, and no access command needs it. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

export function viewPod(object: KubeObject): PodView | undefined {
  const metadata = viewMetadata(object);
  if (!metadata) return undefined;
  const { labels = {}, annotations = {}, deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  const { [lastApplied]: _, ...otherAnnotations } = annotations;
  const requestRef = requestRefOf(object);
  const controller = controllerOf(object);
  const deleting = deletionTimestamp !== undefined;
  const ended = endOf(object.status);
  const isReady = own(conditionOf(object.status, 'Ready'), 'status') === 'True';
  const ready = isReady && !deleting && ended === undefined;
  const deadlineMs = deadlineOf(object);
  return {
    ...metadata,
    labels,
    annotations: otherAnnotations,
    phase: text(own(object.status, 'phase')),
    ready,
    ...(ended === undefined ? {} : { ended }),
    deleting,
    nothingToRevoke: deleting && deletionGracePeriodSeconds <= deletionGraceS,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(requestRef ? { requestRef } : {}),
    ...(controller ? { controller: ownerView(controller) } : {}),
    notReadyReason: ready ? '' : notReadyReasonOf(object, ended),
  };
}

/** The kubelet counts from `status.startTime`, which it sets after the Pod was created. */
function deadlineOf({ metadata, spec, status }: KubeObject): number | undefined {
  const seconds = own(spec, 'activeDeadlineSeconds');
  const startMs = parseTime(text(own(status, 'startTime')) || (metadata.creationTimestamp ?? ''));
  return typeof seconds === 'number' && startMs !== undefined ? startMs + seconds * 1000 : undefined;
}

/** Such as `container shell: ImagePullBackOff: ...`; no restart counts and times, which change. */
function notReadyReasonOf({ metadata, status }: KubeObject, ended: string | undefined): string {
  if (ended !== undefined) return `the Pod has ended: ${ended}`;
  if (metadata.deletionTimestamp !== undefined) return 'the Pod is being deleted, and access ends with it';
  const describe = `; see the Events of the Pod with: kubectl describe pod ${metadata.name} -n ${metadata.namespace}`;
  const container = stoppedContainerOf(status);
  if (container !== undefined) return `${container}${describe}`;
  const scheduled = conditionOf(status, 'PodScheduled');
  if (own(scheduled, 'status') === 'False') return `not scheduled${said(scheduled)}${describe}`;
  const phase = text(own(status, 'phase'));
  if (phase !== 'Running') return `the Pod is ${phase || 'Pending'}`;
  // The kubelet names the containers, such as `containers with unready status: [shell]`.
  return `the Pod is Running, but not Ready${said(conditionOf(status, 'Ready')) || ': its condition Ready has no message'}${describe}`;
}

/** The phases Failed and Succeeded are final. Else by the container that failed. */
function endOf(status: unknown): string | undefined {
  const phase = text(own(status, 'phase'));
  if (phase !== 'Failed' && phase !== 'Succeeded') return undefined;
  const reason = text(own(status, 'reason'));
  if (reason !== '') return `${phase}: ${printable(reason)}${said(status)}`;
  const container = phase === 'Failed' ? stoppedContainerOf(status) : undefined;
  return container === undefined ? `${phase}${said(status)}` : `${phase}: ${container}`;
}

/** The first that waits or failed, such as `container app: OOMKilled (exit code 137)`. */
function stoppedContainerOf(status: unknown): string | undefined {
  for (const container of [...listIn(status, 'initContainerStatuses'), ...listIn(status, 'containerStatuses')]) {
    const state = own(container, 'state');
    const details = own(state, 'waiting') ?? own(state, 'terminated');
    if (details === undefined || own(details, 'reason') === 'Completed') continue;
    return `container ${text(own(container, 'name'))}: ${stopOf(details, own(own(container, 'lastState'), 'terminated'))}`;
  }
  return undefined;
}

/** `details`: why it waits, or how it terminated. `last`: how it terminated before it waited. */
function stopOf(details: unknown, last: unknown): string {
  const reason = printable(text(own(details, 'reason'))) || 'not running';
  const exitCode = own(details, 'exitCode');
  // The message of StartError is by the runtime; others are by the container, perhaps from its log.
  if (typeof exitCode === 'number')
    return `${reason} (exit code ${exitCode})${reason === 'StartError' ? said(details) : ''}`;
  // Its message has a delay, which changes.
  if (reason === 'CrashLoopBackOff') return last === undefined ? reason : `${reason} after ${stopOf(last, undefined)}`;
  // The kubelet alternates between both, and each change would cost a write.
  return `${reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason}${said(details, /^Back-off pulling image "[^"]*"(: ErrImagePull: )?/)}`;
}

/** Characters of a message of the kubelet or the scheduler in ours. */
const maxSaid = 200;

/** `: ` and the message without `prefix`, in one line. It is input from outside. */
function said(details: unknown, prefix = /^/): string {
  const message = text(own(details, 'message')).replace(prefix, '').trim();
  return message === '' ? '' : `: ${shorten(printable(message), maxSaid)}`;
}

const conditionOf = (status: unknown, type: string): unknown =>
  listIn(status, 'conditions').find((condition) => own(condition, 'type') === type);

/** At most 512 characters; empty unless a string. */
const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 512) : '');

export interface WorkloadView extends ViewMetadata {
  readonly apiVersion: string;
  readonly kind: string;
  readonly selector: LabelSelector | undefined;
  /** As the API server returned it; untrusted, never changed in place. */
  readonly podTemplate: Readonly<Record<string, unknown>>;
}

export const viewWorkload =
  (resource: Resource) =>
  (object: KubeObject): WorkloadView | undefined => {
    const metadata = viewMetadata(object);
    if (!metadata) return undefined;
    const podTemplate = own(object.spec, 'template');
    return {
      ...metadata,
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      selector: asSelector(own(object.spec, 'selector')),
      podTemplate: isRecord(podTemplate) ? podTemplate : {},
    };
  };

export interface SelectorView extends ViewMetadata {
  readonly kind: SelectorReference['kind'];
  /** If undefined, selects nothing. */
  readonly selector: LabelSelector | undefined;
  /** A NetworkPolicy that restricts the egress of the pods that it selects. */
  readonly isolatesEgress: boolean;
}

/** An absent selector selects nothing. */
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

export const viewSelector =
  (kind: SelectorView['kind']) =>
  (object: KubeObject): SelectorView | undefined => {
    const metadata = viewMetadata(object);
    // The API server defaults policyTypes, so they are always present.
    const isolatesEgress = kind === 'NetworkPolicy' && listIn(object.spec, 'policyTypes').includes('Egress');
    return metadata && { ...metadata, kind, selector: selectorOf[kind](object.spec), isolatesEgress };
  };
