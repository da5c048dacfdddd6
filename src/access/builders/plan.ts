import type { GrantedRule, GrantSession, GrantSubject } from '../../api/access/grant.ts';
import type { TemplateSpec } from '../../api/access/kinds.ts';
import { childNameOf, planHashAnnotation, requestLabel } from '../../api/access/names.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta, type Resource } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { roleBindingOf, roleOf, toRbacSubject } from '../../rbac/roles.ts';
import { baseRules, confinedTo } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import { gatewayRoleRules } from '../policy/session-policy.ts';
import type { AccessStores } from '../stores/access-stores.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { PlanQueue } from './plan-budget.ts';

/**
 * What a grant creates. The same request, template, terms, and cluster state give the same plan.
 */
export interface Plan {
  /** The pod that the grant opens; `uid` if it exists already (ExecAccess). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** Never empty. */
  readonly subjects: GrantSubject[];
  /** Confined to the target pod, for the Role or, with `session`, for the gateway. */
  readonly rules: GrantedRule[];
  /** Present if the subjects reach the pod only through the gateway. */
  readonly session?: GrantSession;
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /** SHA-256 (hex) of the children, without the annotations of this hash and of the MAC. */
  readonly hash: string;
  /** For the condition `PodLimited`: one clause for each limit that the caps set or lowered. */
  readonly limits?: readonly string[];
}

export type Planned =
  | { readonly plan: Plan }
  | {
      readonly violation: Violation;
      /** For a comparison with the violations before an update. */
      readonly others?: readonly Violation[];
    };

/** What the template alone does not determine. */
export interface GrantTerms {
  readonly subjects: readonly GrantSubject[];
  readonly durationMs: number;
  /** From the stored grant, if the server plans it again. */
  readonly pinned?: {
    readonly name: string;
    readonly uid?: string;
    readonly rules?: readonly GrantedRule[];
    readonly session?: GrantSession;
  };
}

/** Plans the grant of one kind of access. Call it only after the stores have synced. */
export type Builder<Spec extends TemplateSpec = TemplateSpec> = (
  request: RequestView,
  template: TemplateView<Spec>,
  terms: GrantTerms,
  deps: BuilderDeps,
  signal: AbortSignal,
) => Promise<Planned>;

export interface BuilderDeps {
  readonly stores: Pick<AccessStores, 'workload' | 'workloadsIn' | 'selectorsIn' | 'pods'>;
  /** For objects that have no store. */
  readonly client: Pick<Client, 'get'>;
  /** For plans that can take milliseconds of processor time. */
  readonly queue: PlanQueue;
  readonly clock: Clock;
  readonly accessPods: AccessPodMode;
}

/**
 * What access pods take over from their workload: labels that NetworkPolicies need (`confined`),
 * or, as in Oz, the ServiceAccount and no labels (`oz`). See ADR 0029.
 */
export type AccessPodMode = 'confined' | 'oz';

/** The template may still be ready, because its status lags behind. `remedy` ends the message. */
export const targetNotFound = (
  { kind, name }: { readonly kind: string; readonly name: string },
  namespace: string,
  remedy = 'create it, or correct controllerTargetRef or the namespace of the template',
): Violation => ({
  code: 'TargetNotFound',
  message: `${kind} ${quote(name)} does not exist in namespace ${namespace}; ${remedy}`,
  field: 'spec.controllerTargetRef',
  status: 404,
});

export interface RequestIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * The request is the owner, so that Kubernetes garbage-collects the child even if a client removes
 * our finalizer, except with the propagation policy `Orphan`.
 */
export function childMetadata(request: RequestIdentity, requestResource: Resource): ObjectMeta {
  return {
    name: childNameOf(request),
    namespace: request.namespace,
    labels: { [requestLabel]: request.uid },
    annotations: {},
    ownerReferences: [
      {
        apiVersion: apiVersionOf(requestResource),
        kind: requestResource.kind,
        name: request.name,
        uid: request.uid,
        controller: true,
      },
    ],
  };
}

/** Each of the children has the hash of all of them. */
export function planChildren(input: {
  readonly request: RequestIdentity;
  readonly requestResource: Resource;
  readonly target: Plan['target'];
  readonly subjects: readonly GrantSubject[];
  /** Default: what every grant allows. */
  readonly rules?: readonly GrantedRule[];
  readonly session?: GrantSession | undefined;
  readonly pod?: KubeObject;
  readonly limits?: readonly string[];
}): Plan {
  const { request, requestResource, target, pod, session, rules = confinedTo(target.name, baseRules) } = input;
  const roleRules = session ? gatewayRoleRules(target.name, childNameOf(request)) : rules;
  const role = roleOf(childMetadata(request, requestResource), roleRules);
  const roleBinding = roleBindingOf(
    childMetadata(request, requestResource),
    role.metadata.name,
    input.subjects.map(toRbacSubject),
  );
  const children = pod ? [pod, role, roleBinding] : [role, roleBinding];
  const hash = sha256Hex(canonicalJson(children));
  const withHash = (child: KubeObject): KubeObject => ({
    ...child,
    metadata: { ...child.metadata, annotations: { ...child.metadata.annotations, [planHashAnnotation]: hash } },
  });
  return {
    target,
    subjects: [...input.subjects],
    rules: [...rules],
    ...(session ? { session } : {}),
    ...(pod ? { pod: withHash(pod) } : {}),
    role: withHash(role),
    roleBinding: withHash(roleBinding),
    hash,
    ...(input.limits?.length ? { limits: input.limits } : {}),
  };
}
