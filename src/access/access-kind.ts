import { accesses, type RequestKind } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
import type { Resource } from '../api/object.ts';
import type { Store } from '../kube/store.ts';
import { buildExecAccess } from './builders/exec-access.ts';
import type { Builder, BuilderDeps, GrantTerms, Planned } from './builders/plan.ts';
import { PlanQueue } from './builders/plan-budget.ts';
import { buildPodAccess } from './builders/pod-access.ts';
import type { AccessStores } from './stores/access-stores.ts';
import type { RequestView, TemplateView } from './stores/access-views.ts';

/** Such as PodAccess. Each kind has its own controllers of templates and of requests. */
export interface AccessKind {
  readonly requestKind: RequestKind;
  readonly templateKind: TemplateKind;
  readonly requestResource: Resource;
  readonly templateResource: Resource;
  readonly createsPod: boolean;
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView>;
  /** See `Builder`. */
  plan(request: RequestView, template: TemplateView, terms: GrantTerms, signal: AbortSignal): Promise<Planned>;
}

/** Each accepts only templates of its kind. */
const builders: { readonly [Kind in RequestKind]: Builder<never> } = {
  PodAccessRequest: buildPodAccess,
  ExecAccessRequest: buildExecAccess,
};

/** All kinds share one queue of plans. */
export function createAccessKinds(
  deps: Omit<BuilderDeps, 'queue' | 'stores'> & { readonly stores: AccessStores },
): AccessKind[] {
  const { stores } = deps;
  const builderDeps = { ...deps, queue: new PlanQueue(deps.clock) };
  return accesses.map((access) => {
    const requestKind = access.request.resource.kind;
    const build = builders[requestKind] as Builder;
    return {
      requestKind,
      templateKind: access.template.resource.kind,
      requestResource: access.request.resource,
      templateResource: access.template.resource,
      createsPod: access.createsPod,
      ...stores.of(requestKind),
      plan: (request, template, terms, signal) => build(request, template, terms, builderDeps, signal),
    };
  });
}
