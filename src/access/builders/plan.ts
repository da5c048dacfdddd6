import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import type { TemplateSpec } from '../../api/access/kinds.ts';
import { childNameSuffix, planHashAnnotation, requestLabel } from '../../api/access/names.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta, type Resource } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { roleBindingOf, roleOf, toRbacSubject } from '../../rbac/roles.ts';
import { baseRules, confinedTo } from '../policy/granted-rules.ts';
import type { Violation } from '../policy/policy.ts';
import type { AccessStores } from '../stores/access-stores.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { PlanQueue } from './plan-budget.ts';

/** Everything that the server creates for a grant. The same request, template, terms, and cluster state give the same plan and hash. */
export interface Plan {
  /** The pod that the grant opens; `uid` is set if the pod exists already (ExecAccess). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** The users and groups that get access; never empty. */
  readonly subjects: GrantSubject[];
  /** The rules of the Role, confined to the target pod. */
  readonly rules: GrantedRule[];
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /**
   * SHA-256 (hex) of the children (Pod, Role, and RoleBinding), without the annotations for this hash and for the MAC (the server's
   * signature). Each child has the hash as the annotation `access.drawbridge.dev/plan-hash`.
   */
  readonly hash: string;
  /** The resources that the template's caps lowered, one clause each, for the condition; absent if they lowered none. */
  readonly notes?: readonly string[];
}

/** The plan, or the violation that denies the request. */
export type Planned = { readonly plan: Plan } | { readonly violation: Violation };

/** The terms of a grant that the template alone does not determine. */
export interface GrantTerms {
  readonly subjects: readonly GrantSubject[];
  /** Granted duration, milliseconds. */
  readonly durationMs: number;
  /** The pod and the rules of the stored grant, if the server plans it again; absent before the decision. */
  readonly pinned?: { readonly name: string; readonly uid?: string; readonly rules?: readonly GrantedRule[] };
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
 * `TargetNotFound`: the workload of the template does not exist. The template may still be marked ready, because its status lags behind.
 */
export const targetNotFound = (
  ref: { readonly kind: string; readonly name: string },
  namespace: string,
): Violation => ({
  code: 'TargetNotFound',
  message: `${ref.kind} ${ref.name} does not exist in namespace ${namespace}; create it or correct the template`,
  field: 'spec.controllerTargetRef',
  status: 404,
});

/** The fields of a request that builders use. */
export interface RequestIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * Metadata of a child: a deterministic name, the label that the stores select by, and the request as the owner. If a client removes our
 * finalizer and deletes the request, Kubernetes garbage-collects the child.
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
  /** Rules of the Role. Default: those of every grant. */
  readonly rules?: readonly GrantedRule[];
  readonly pod?: KubeObject;
  readonly notes?: readonly string[];
}): Plan {
  const { request, requestResource, target, pod, rules = confinedTo(target.name, baseRules) } = input;
  const role = roleOf(childMetadata(request, requestResource), rules);
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
    ...(pod ? { pod: withHash(pod) } : {}),
    role: withHash(role),
    roleBinding: withHash(roleBinding),
    hash,
    ...(input.notes?.length ? { notes: input.notes } : {}),
  };
}

const NAME_LENGTH = 46;
const UID_LENGTH = 8;

/** The name of a request's Pod, Role, and RoleBinding, at most 62 characters: `<46 characters of the name>-<8 of the uid>-access`. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A truncated name may end in a dash or dot, which is invalid in a DNS label.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
