import type { GrantedRule, GrantSubject } from '../api/access/grant.ts';
import type { Resource } from '../api/object.ts';
import type { Store } from '../kube/store.ts';
import type { Planned } from './builders/plan.ts';
import type { RequestView, TemplateView } from './stores/views.ts';
import type { TemplateSpec } from './template/template-state.ts';

/** What a builder needs beyond the request and its template. */
export interface Granting {
  readonly subjects: readonly GrantSubject[];
  readonly durationMs: number;
  /** The pod and the rules that the grant fixed earlier; absent while deciding. */
  readonly pinned?: { readonly name: string; readonly uid?: string; readonly rules?: readonly GrantedRule[] };
}

/** Everything that tells one kind of access from another; the life of a request is the same for all. */
export interface AccessKind<Spec extends TemplateSpec = TemplateSpec> {
  readonly requestKind: 'PodAccessRequest' | 'ExecAccessRequest';
  readonly templateKind: 'PodAccessTemplate' | 'ExecAccessTemplate';
  readonly requestResource: Resource;
  readonly templateResource: Resource;
  /** Whether a grant of this kind makes a Pod of its own. */
  readonly createsPod: boolean;
  readonly requests: Store<RequestView>;
  readonly templates: Store<TemplateView<Spec>>;
  /** Name of every child of this request. */
  childName(request: RequestView): string;
  /** Describes the grant. Reads stores, so it may be asked only once they have synced. */
  plan(request: RequestView, template: TemplateView<Spec>, granting: Granting): Planned;
}
