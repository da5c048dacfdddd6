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
import { type PodNames, podNamesOf } from '../policy/kubectl-command.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

/** The request that an object was created for. */
export interface RequestRef {
  readonly uid: string;
  /** Absent if the object has no controller, for example after the request was deleted with the propagation policy `Orphan`. */
  readonly owner?: { readonly kind: string; readonly name: string };
}

/**
 * The request that the metadata of the object names; undefined for an object without this metadata. The object must have the label
 * `access.drawbridge.dev/request`, the annotation with the plan hash, and the request as its controller. If it has no controller (see
 * `RequestRef.owner`), its name must end in the first 8 characters of the uid and `-access`.
 */
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

/** The owner reference with `controller: true`; there is at most one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find((owner) => owner.controller === true);

/** A Role or RoleBinding of a grant. */
export interface ChildView extends ViewMetadata {
  readonly requestRef: RequestRef;
  /** Has a deletionTimestamp and no subjects, so it gives no access, even if a finalizer keeps it. */
  readonly nothingToRevoke: boolean;
}

/** The projection of a Role or RoleBinding of a grant; undefined for any other. */
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
  /** Ready, and not being deleted: the kubelet keeps the condition Ready of a Pod until its containers stop. */
  readonly ready: boolean;
  /** How the Pod ended, in one line, such as `Failed: Evicted: ...`. Absent while it can run: its phase is neither Failed nor Succeeded. */
  readonly ended?: string;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
  /** Has a deletionTimestamp and a grace period of at most `deletionGraceS` seconds. */
  readonly nothingToRevoke: boolean;
  /** Earliest time at which the kubelet stops the Pod because of `activeDeadlineSeconds`, epoch ms. Absent without that field. */
  readonly deadlineMs?: number;
  /** The request whose access pod this is; absent for any other Pod. */
  readonly requestRef?: RequestRef;
  /** The controller of the Pod, such as a ReplicaSet or a Job; absent if it has none. */
  readonly controller?: { readonly kind: string; readonly name: string; readonly uid: string };
  readonly names: PodNames;
  /** Why the Pod is not ready, in one line for conditions; empty if it is ready. */
  readonly notReadyReason: string;
}

/** Truncates each value to 512 characters, because the API server does not limit the length of an owner reference. */
const ownerView = ({ kind, name, uid }: OwnerReference) => ({ kind: text(kind), name: text(name), uid: text(uid) });

/** An annotation with a whole manifest: it would take most of the memory of a view, and access commands do not need it. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** The projection of a Pod; undefined if its metadata lacks the uid, the resourceVersion, or the namespace. */
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
    names: podNamesOf(object.spec),
    notReadyReason: ready ? '' : notReadyReasonOf(object, ended),
  };
}

/** The kubelet counts from `status.startTime`, which it sets after the Pod was created. */
function deadlineOf({ metadata, spec, status }: KubeObject): number | undefined {
  const seconds = own(spec, 'activeDeadlineSeconds');
  const startMs = parseTime(text(own(status, 'startTime')) || (metadata.creationTimestamp ?? ''));
  return typeof seconds === 'number' && startMs !== undefined ? startMs + seconds * 1000 : undefined;
}

/**
 * Why the Pod is not ready, for example `container shell: ImagePullBackOff: ...`, with what the kubelet says about it. Contains neither
 * restart counts nor times, which would change with every update.
 */
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

/** How a Pod ended whose phase is Failed or Succeeded, which is final: by its status, else by the container that failed. */
function endOf(status: unknown): string | undefined {
  const phase = text(own(status, 'phase'));
  if (phase !== 'Failed' && phase !== 'Succeeded') return undefined;
  const reason = text(own(status, 'reason'));
  if (reason !== '') return `${phase}: ${printable(reason)}${said(status)}`;
  const container = phase === 'Failed' ? stoppedContainerOf(status) : undefined;
  return container === undefined ? `${phase}${said(status)}` : `${phase}: ${container}`;
}

/** The first container that waits or failed, and why, such as `container app: OOMKilled (exit code 137)`. Undefined if there is none. */
function stoppedContainerOf(status: unknown): string | undefined {
  for (const container of [...listIn(status, 'initContainerStatuses'), ...listIn(status, 'containerStatuses')]) {
    const state = own(container, 'state');
    const details = own(state, 'waiting') ?? own(state, 'terminated');
    if (details === undefined || own(details, 'reason') === 'Completed') continue;
    return `container ${text(own(container, 'name'))}: ${stopOf(details, own(own(container, 'lastState'), 'terminated'))}`;
  }
  return undefined;
}

/** `details`: why a container waits or how it terminated. `last`: how it terminated before it waited, if it did. */
function stopOf(details: unknown, last: unknown): string {
  const reason = printable(text(own(details, 'reason'))) || 'not running';
  const exitCode = own(details, 'exitCode');
  // The runtime writes the message of StartError. That of another termination is from the container itself, perhaps from its log.
  if (typeof exitCode === 'number')
    return `${reason} (exit code ${exitCode})${reason === 'StartError' ? said(details) : ''}`;
  // Its message has a delay, which changes.
  if (reason === 'CrashLoopBackOff') return last === undefined ? reason : `${reason} after ${stopOf(last, undefined)}`;
  // The kubelet alternates between ErrImagePull and ImagePullBackOff, and each change would cause a status write.
  return `${reason === 'ErrImagePull' ? 'ImagePullBackOff' : reason}${said(details, /^Back-off pulling image "[^"]*"(: ErrImagePull: )?/)}`;
}

/** Maximum length of a message of the kubelet or the scheduler in ours, characters. */
const maxSaid = 200;

/** `: ` and the message of `details` without `prefix`, in one line; empty if it has none. The message is input from outside. */
function said(details: unknown, prefix = /^/): string {
  const message = text(own(details, 'message')).replace(prefix, '').trim();
  return message === '' ? '' : `: ${shorten(printable(message), maxSaid)}`;
}

const conditionOf = (status: unknown, type: string): unknown =>
  listIn(status, 'conditions').find((condition) => own(condition, 'type') === type);

/** A string of at most 512 characters; empty for any other value. */
const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 512) : '');

/** The fields of a workload that the access feature uses. */
export interface WorkloadView extends ViewMetadata {
  readonly apiVersion: string;
  readonly kind: string;
  readonly selector: LabelSelector | undefined;
  /** The PodTemplateSpec as the API server returned it; untrusted, never changed in place. */
  readonly podTemplate: Readonly<Record<string, unknown>>;
}

/** The projection of a workload. Its kind and version come from `resource`. Undefined if `viewMetadata` returns undefined. */
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

/** An object that selects pods by labels. */
export interface SelectorView extends ViewMetadata {
  readonly kind: SelectorReference['kind'];
  /** If undefined, selects nothing. */
  readonly selector: LabelSelector | undefined;
  /** True for a NetworkPolicy that restricts the egress of the pods that it selects. */
  readonly isolatesEgress: boolean;
}

/** Reads the selector of each kind as a LabelSelector. An absent selector selects nothing. */
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

/**
 * The projection of an object that selects pods. Its kind comes from the parameter. Undefined if `viewMetadata` returns undefined.
 */
export const viewSelector =
  (kind: SelectorView['kind']) =>
  (object: KubeObject): SelectorView | undefined => {
    const metadata = viewMetadata(object);
    // The API server defaults policyTypes, so they are always present.
    const isolatesEgress = kind === 'NetworkPolicy' && listIn(object.spec, 'policyTypes').includes('Egress');
    return metadata && { ...metadata, kind, selector: selectorOf[kind](object.spec), isolatesEgress };
  };
