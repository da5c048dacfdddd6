import type { Resource } from '../object.ts';

const accessGroup = 'crds.wizardofoz.co';
const accessVersion = 'v1alpha1';

/** `kubectl get access` lists requests, votes, and sessions. */
export const accessCategory = 'access';

/** On requests, until their access is closed. */
export const revokeFinalizer = 'access.drawbridge.dev/revoke';
/** On every object that the server creates for a request (a child): the uid of the request. */
export const requestLabel = 'access.drawbridge.dev/request';
/** On every child: the hash of its plan. */
export const planHashAnnotation = 'access.drawbridge.dev/plan-hash';

/** By this suffix of all children, the webhook `enforce.vpod.kb.io` recognizes access pods. */
export const childNameSuffix = '-access';

/** Condition types of requests; `status.ready` requires all of them. */
export const requestConditions = {
  targetTemplateExists: 'TargetTemplateExists',
  accessDurationsValid: 'AccessDurationsValid',
  accessStillValid: 'AccessStillValid',
  accessResourcesCreated: 'AccessResourcesCreated',
  accessResourcesReady: 'AccessResourcesReady',
  accessMessage: 'AccessMessage',
} as const;

/** Condition types of templates; `status.ready` requires all of them. */
export const templateConditions = {
  templateDurationsValid: 'TemplateDurationsValid',
  targetRefExists: 'TargetRefExists',
  accessCommandValid: 'AccessCommandValid',
  authorHoldsRights: 'AuthorHoldsRights',
  accessPlanValid: 'AccessPlanValid',
} as const;

/** Reason of AccessPlanValid if it is True, and the API server drops fields of the pod. */
export const fieldsIgnored = 'FieldsIgnored';

/** Of templates with `session.via: Gateway`; their `status.ready` requires it, too. */
export const gatewayCondition = 'GatewayAvailable';

/** For kstatus. They summarize the others, and do not affect `status.ready`. */
export const summaryConditions = { ready: 'Ready', reconciling: 'Reconciling', stalled: 'Stalled' } as const;

/** Of emergencies, and of requests that wait for approvals, a claim, or their start. */
export const approvalCondition = 'AccessApproved';

/** Of requests whose access is shorter than requested. */
export const shortenedCondition = 'AccessShortened';

/** Of requests whose access pod the template limits more than its spec (`maxCpu` and so on). */
export const limitedCondition = 'PodLimited';

export type RequestCondition =
  | (typeof requestConditions)[keyof typeof requestConditions]
  | typeof approvalCondition
  | typeof shortenedCondition
  | typeof limitedCondition;
export type TemplateCondition = (typeof templateConditions)[keyof typeof templateConditions] | typeof gatewayCondition;

/** Every kind, for the schema of grants. */
export const templateKinds = ['PodAccessTemplate', 'ExecAccessTemplate'] as const;
export type TemplateKind = (typeof templateKinds)[number];

/** Of the API group of requests and templates. The type contains the kind. */
export const accessResource = <const Name extends string>(plural: string, kind: Name) =>
  ({ group: accessGroup, version: accessVersion, plural, kind, namespaced: true }) satisfies Resource;

/** Characters of the name and the uid of a request in the names of its children. */
const NAME_LENGTH = 46;
const UID_LENGTH = 8;

/** Of a request's Pod, Role, and RoleBinding; at most 62 characters. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A truncated name may end in a dash or dot, which is invalid in a DNS label.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
