import { accesses, type RequestKind } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
import type { Resource } from '../api/object.ts';
import type { Store } from '../kube/store.ts';
import { buildExecAccess } from './builders/exec-access.ts';
import type { Builder, BuilderDeps, Granting, Planned } from './builders/plan.ts';
import { PlanQueue } from './builders/plan-budget.ts';
import { buildPodAccess } from './builders/pod-access.ts';
import type { AccessStores } from './stores/access-stores.ts';
import type { RequestView, TemplateView } from './stores/access-views.ts';

/** Everything that differs between kinds of access; the reconciler of requests is the same for all. */
export interface AccessKind {
  readonly requestKind: RequestKind;
  readonly templateKind: TemplateKind;
  readonly requestResource: Resource;
  readonly templateResource: Resource;
  /** Whether a grant of this kind creates a Pod. */
  readonly createsPod: boolean;
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView>;
  /** Plans the grant. Reads stores, so callers call it only after the stores have synced. */
  plan(request: RequestView, template: TemplateView, granting: Granting, signal: AbortSignal): Promise<Planned>;
}

/** The builder of each request kind. It accepts only templates of its kind. */
const builders: { readonly [Kind in RequestKind]: Builder<never> } = {
  PodAccessRequest: buildPodAccess,
  ExecAccessRequest: buildExecAccess,
};

/** Every kind of access, with its stores and its builder. */
export function accessKinds(
  given: Omit<BuilderDeps, 'queue' | 'stores'> & { readonly stores: AccessStores },
): AccessKind[] {
  const { stores } = given;
  const deps = { ...given, queue: new PlanQueue(given.clock) };
  return accesses.map(({ request, template, createsPod }) => {
    const requestKind = request.resource.kind;
    const build = builders[requestKind] as Builder;
    return {
      requestKind,
      templateKind: template.resource.kind,
      requestResource: request.resource,
      templateResource: template.resource,
      createsPod,
      ...stores.of(requestKind),
      plan: (request, template, granting, signal) => build(request, template, granting, deps, signal),
    };
  });
}
