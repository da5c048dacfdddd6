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

/** Everything that the server creates for a grant. The same request, template, terms, and cluster state give the same plan and hash. */
export interface Plan {
  /** The pod that the grant opens; `uid` is set if the pod exists already (ExecAccess). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** The users and groups that get access; never empty. */
  readonly subjects: GrantSubject[];
  /** What the subjects may do, confined to the target pod: the rules of the Role or, with `session`, what the gateway passes. */
  readonly rules: GrantedRule[];
  /** Present if the subjects reach the pod only through the gateway. */
  readonly session?: GrantSession;
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /**
   * SHA-256 (hex) of the children (Pod, Role, and RoleBinding), without the annotations for this hash and for the MAC (the server's
   * signature). Each child has the hash as the annotation `access.drawbridge.dev/plan-hash`.
   */
  readonly hash: string;
  /** The limits and requests that the template's caps set or lowered, one clause each, for the condition `PodLimited`. Absent if there are none. */
  readonly limits?: readonly string[];
}

/** The plan, or the violation that denies the request. */
export type Planned =
  | { readonly plan: Plan }
  | {
      readonly violation: Violation;
      /** Further violations, for a comparison with those before an update. */
      readonly others?: readonly Violation[];
    };

/** The terms of a grant that the template alone does not determine. */
export interface GrantTerms {
  readonly subjects: readonly GrantSubject[];
  /** Granted duration, milliseconds. */
  readonly durationMs: number;
  /** The pod, the rules, and the session of the stored grant, if the server plans it again; absent before the decision. */
  readonly pinned?: {
    readonly name: string;
    readonly uid?: string;
    readonly rules?: readonly GrantedRule[];
    readonly session?: GrantSession;
  };
}

/** Plans the grant of one kind of access. Reads stores, so call it only after they have synced. Rejects as the client does. */
export type Builder<Spec extends TemplateSpec = TemplateSpec> = (
  request: RequestView,
  template: TemplateView<Spec>,
  terms: GrantTerms,
  deps: BuilderDeps,
  signal: AbortSignal,
) => Promise<Planned>;

export interface BuilderDeps {
  /** The part of the cluster that builders read. */
  readonly stores: Pick<AccessStores, 'workload' | 'workloadsIn' | 'selectorsIn' | 'pods'>;
  /** Reads objects that have no store. */
  readonly client: Pick<Client, 'get'>;
  /** Runs plans that can take milliseconds of processor time. */
  readonly queue: PlanQueue;
  readonly clock: Clock;
  readonly accessPods: AccessPodMode;
}

/**
 * What access pods take over from their workload. `confined`: the labels by which NetworkPolicies confine it, and its ServiceAccount only
 * if the template keeps it. `oz`: its ServiceAccount, and none of its labels, as in Oz. See ADR 0029.
 */
export type AccessPodMode = 'confined' | 'oz';

/**
 * `TargetNotFound`: the workload of the template does not exist. The template may still be ready, because its status lags behind.
 * `remedy`: what to do, as the end of the message.
 */
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

/** What identifies a request in a plan. */
export interface RequestIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * Metadata of a child: a deterministic name, the label that the stores select by, and the request as the owner. If a client removes our
 * finalizer and deletes the request, Kubernetes garbage-collects the child, except with the propagation policy `Orphan`.
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

/** The plan for access to `target`: Role, RoleBinding, and the Pod to create, if any. Each of these has the hash of all of them. */
export function planChildren(input: {
  readonly request: RequestIdentity;
  readonly requestResource: Resource;
  readonly target: Plan['target'];
  readonly subjects: readonly GrantSubject[];
  /** What the subjects may do. Default: what every grant allows. */
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
