import type { Kind, ObjectOf } from '../schema/kind.ts';
import { accessSessionKind } from './access-session.ts';
import { accessVoteKind } from './access-vote.ts';
import { execAccess } from './exec-access.ts';
import type { TemplateKind } from './names.ts';
import { podAccess } from './pod-access.ts';

/**
 * Every kind of access: its request, its template, and whether a grant creates a Pod. `src/access/access-kind.ts` adds the builder of each
 * kind.
 */
export const accesses = [podAccess, execAccess] as const;

/** One kind of access, from `accesses`. */
export type Access = (typeof accesses)[number];
/** The name of a kind of request, such as `PodAccessRequest`. */
export type RequestKind = Access['request']['resource']['kind'];
/** The spec of a request of any kind. */
export type RequestSpec = ObjectOf<Access['request']>['spec'];
/** The spec of a template of any kind. */
export type TemplateSpec = ObjectOf<Access['template']>['spec'];

/** The custom resources of requests and templates. */
export const accessKinds: readonly Kind[] = accesses.flatMap(({ template, request }) => [template, request]);

/** All custom resources of the access feature. The CRDs of the chart are generated from them, one file for each. */
export const accessCrds: readonly Kind[] = [...accessKinds, accessVoteKind, accessSessionKind];

/** The kind of access that requests of this kind ask for. */
export const accessOfRequest = (kind: RequestKind): Access => byRequest[kind];
/** The kind of access that templates of this kind grant. */
export const accessOfTemplate = (kind: TemplateKind): Access => byTemplate[kind];

const byRequest = Object.fromEntries(accesses.map((access) => [access.request.resource.kind, access])) as Readonly<
  Record<RequestKind, Access>
>;
const byTemplate = Object.fromEntries(accesses.map((access) => [access.template.resource.kind, access])) as Readonly<
  Record<TemplateKind, Access>
>;
