import type { Kind, ObjectOf } from '../schema/kind.ts';
import { accessSessionKind } from './access-session.ts';
import { accessVoteKind } from './access-vote.ts';
import { execAccess } from './exec-access.ts';
import type { TemplateKind } from './names.ts';
import { podAccess } from './pod-access.ts';

/** `src/access/access-kind.ts` adds the builder of each kind. */
export const accesses = [podAccess, execAccess] as const;

export type Access = (typeof accesses)[number];
/** Such as `PodAccessRequest`. */
export type RequestKind = Access['request']['resource']['kind'];
export type RequestSpec = ObjectOf<Access['request']>['spec'];
export type TemplateSpec = ObjectOf<Access['template']>['spec'];

export const accessKinds: readonly Kind[] = accesses.flatMap(({ template, request }) => [template, request]);

/** The CRDs of the chart are generated from them, one file for each. */
export const accessCrds: readonly Kind[] = [...accessKinds, accessVoteKind, accessSessionKind];

export const accessOfRequest = (kind: RequestKind): Access => byRequest[kind];
export const accessOfTemplate = (kind: TemplateKind): Access => byTemplate[kind];

const byRequest = Object.fromEntries(accesses.map((access) => [access.request.resource.kind, access])) as Readonly<
  Record<RequestKind, Access>
>;
const byTemplate = Object.fromEntries(accesses.map((access) => [access.template.resource.kind, access])) as Readonly<
  Record<TemplateKind, Access>
>;
