import type { Resource } from '../object.ts';

const accessGroup = 'crds.wizardofoz.co';
const accessVersion = 'v1alpha1';

/** Holds a request until everything that it opened is closed. */
export const revokeFinalizer = 'access.drawbridge.dev/revoke';
/** On every child: the uid of the request that it belongs to. */
export const requestLabel = 'access.drawbridge.dev/request';
/** On every child: the hash of the plan that it was created from. */
export const planHashAnnotation = 'access.drawbridge.dev/plan-hash';

/** What the names of all children end in; the webhook that guards access pods is told of no other pod. */
export const childNameSuffix = '-access';

/** On every child: proves that we made it. */
export const macAnnotation = 'access.drawbridge.dev/mac';

export const requestConditions = {
  targetTemplateExists: 'TargetTemplateExists',
  accessDurationsValid: 'AccessDurationsValid',
  accessStillValid: 'AccessStillValid',
  accessResourcesCreated: 'AccessResourcesCreated',
  accessResourcesReady: 'AccessResourcesReady',
  accessMessage: 'AccessMessage',
} as const;

export const templateConditions = {
  templateDurationsValid: 'TemplateDurationsValid',
  targetRefExists: 'TargetRefExists',
  accessCommandValid: 'AccessCommandValid',
  authorHoldsRights: 'AuthorHoldsRights',
} as const;

/** The conditions by which kstatus tells how any object stands; they sum up the others and do not count in `status.ready`. */
export const summaryConditions = { ready: 'Ready', reconciling: 'Reconciling', stalled: 'Stalled' } as const;

export type RequestCondition = (typeof requestConditions)[keyof typeof requestConditions];
export type TemplateCondition = (typeof templateConditions)[keyof typeof templateConditions];

/** Every kind of template, for grants to name. */
export const templateKinds = ['PodAccessTemplate', 'ExecAccessTemplate'] as const;
export type TemplateKind = (typeof templateKinds)[number];

/** A namespaced resource of the group, whose type knows its kind. */
export const accessResource = <const Name extends string>(plural: string, kind: Name) =>
  ({ group: accessGroup, version: accessVersion, plural, kind, namespaced: true }) satisfies Resource;
