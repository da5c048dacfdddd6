import type { Resource } from '../object.ts';

const accessGroup = 'crds.wizardofoz.co';
const accessVersion = 'v1alpha1';

/**
 * Finalizer of requests. The server removes it once it has closed the access, and the signature in `spec.requester` is too old to be reused for
 * another request.
 */
export const revokeFinalizer = 'access.drawbridge.dev/revoke';
/** Label of every child, which is an object that the server creates for a request: the uid of its request. */
export const requestLabel = 'access.drawbridge.dev/request';
/** Annotation of every child: the hash of its plan. */
export const planHashAnnotation = 'access.drawbridge.dev/plan-hash';

/** Suffix of the names of all children, by which the webhook `enforce.vpod.kb.io` recognizes access pods. */
export const childNameSuffix = '-access';

/** Annotation of every child: the MAC that proves that the server created it. */
export const macAnnotation = 'access.drawbridge.dev/mac';

/** Condition types of requests. `status.ready` requires all of them. */
export const requestConditions = {
  targetTemplateExists: 'TargetTemplateExists',
  accessDurationsValid: 'AccessDurationsValid',
  accessStillValid: 'AccessStillValid',
  accessResourcesCreated: 'AccessResourcesCreated',
  accessResourcesReady: 'AccessResourcesReady',
  accessMessage: 'AccessMessage',
} as const;

/** Condition types of templates. `status.ready` requires all of them. */
export const templateConditions = {
  templateDurationsValid: 'TemplateDurationsValid',
  targetRefExists: 'TargetRefExists',
  accessCommandValid: 'AccessCommandValid',
  authorHoldsRights: 'AuthorHoldsRights',
  accessPlanValid: 'AccessPlanValid',
} as const;

/** Condition type of templates with `session.via: Gateway`. Their `status.ready` requires it, too. */
export const gatewayCondition = 'GatewayAvailable';

/** Condition types that kstatus reads. They summarize the other conditions, and do not affect `status.ready`. */
export const summaryConditions = { ready: 'Ready', reconciling: 'Reconciling', stalled: 'Stalled' } as const;

/** Condition type of requests that wait for approvals, a claim, or their start, and of emergencies. `status.ready` does not require it. */
export const approvalCondition = 'AccessApproved';

/** Condition type of requests whose access is shorter than requested. `status.ready` does not require it. */
export const shortenedCondition = 'AccessShortened';

/**
 * Condition type of requests whose access pod `maxCpu`, `maxMemory`, or `maxStorage` of the template limits more than its spec does.
 * `status.ready` does not require it.
 */
export const limitedCondition = 'PodLimited';

/** Condition type of requests with a session whose recording is missing or incomplete. The server sets it to True, and never removes it. */
export const recordingLostCondition = 'RecordingLost';

/** Every condition type of requests except `summaryConditions`. */
export type RequestCondition =
  | (typeof requestConditions)[keyof typeof requestConditions]
  | typeof approvalCondition
  | typeof shortenedCondition
  | typeof limitedCondition
  | typeof recordingLostCondition;
/** Every condition type of templates except `summaryConditions`. */
export type TemplateCondition = (typeof templateConditions)[keyof typeof templateConditions] | typeof gatewayCondition;

/** Every kind of template, for the schema of grants. */
export const templateKinds = ['PodAccessTemplate', 'ExecAccessTemplate'] as const;
export type TemplateKind = (typeof templateKinds)[number];

/** A namespaced resource of the API group of requests and templates. Its type contains its kind. */
export const accessResource = <const Name extends string>(plural: string, kind: Name) =>
  ({ group: accessGroup, version: accessVersion, plural, kind, namespaced: true }) satisfies Resource;

/** How much of the name and of the uid of a request is in the names of its children, characters. */
const NAME_LENGTH = 46;
const UID_LENGTH = 8;

/** The name of a request's Pod, Role, and RoleBinding, at most 62 characters: `<46 characters of the name>-<8 of the uid>-access`. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A truncated name may end in a dash or dot, which is invalid in a DNS label.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
