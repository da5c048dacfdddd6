import type { Kind, ObjectOf } from '../schema/kind.ts';
import { execAccess } from './exec-access.ts';
import type { TemplateKind } from './names.ts';
import { podAccess } from './pod-access.ts';

/**
 * Every kind of access: its request, its template, and whether a grant creates a Pod. Definitions, stores, webhooks, and controllers
 * follow this list, in its order; `src/access/access-kind.ts` adds the builder of each kind.
 */
export const accesses = [podAccess, execAccess] as const;

export type Access = (typeof accesses)[number];
export type RequestKind = Access['request']['resource']['kind'];
export type RequestSpec = ObjectOf<Access['request']>['spec'];
export type TemplateSpec = ObjectOf<Access['template']>['spec'];

/** The custom resources of all kinds of access. The CRDs of the chart are generated from them, one file for each. */
export const accessKinds: readonly Kind[] = accesses.flatMap(({ template, request }) => [template, request]);

/** The kind of access that this kind of request asks for. */
export const accessOfRequest = (kind: RequestKind): Access => byRequest[kind];
/** The kind of access that this kind of template gives. */
export const accessOfTemplate = (kind: TemplateKind): Access => byTemplate[kind];

const byRequest = Object.fromEntries(accesses.map((access) => [access.request.resource.kind, access])) as Readonly<
  Record<RequestKind, Access>
>;
const byTemplate = Object.fromEntries(accesses.map((access) => [access.template.resource.kind, access])) as Readonly<
  Record<TemplateKind, Access>
>;
