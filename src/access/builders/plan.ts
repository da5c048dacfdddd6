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

/** Everything that a grant will create, decided before the server creates anything. The same input gives the same plan and hash. */
export interface Plan {
  /** The pod that the grant opens; `uid` is set if the pod exists already (ExecAccess). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** Who gets access; never empty. */
  readonly subjects: GrantSubject[];
  /** The rules of the Role, confined to the target pod. */
  readonly rules: GrantedRule[];
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /** SHA-256 (hex) of the children without their hash annotation; the value of `access.drawbridge.dev/plan-hash` on each child. */
  readonly hash: string;
  /** Resources that were lowered to the template's caps, one clause each, for the condition; absent if none was. */
  readonly notes?: readonly string[];
}

/** The plan, or the final reason why a template and a request cannot be planned. */
export type Planned = { readonly plan: Plan } | { readonly refusal: Violation };

/** Input of a builder besides the request and its template. */
export interface Granting {
  readonly subjects: readonly GrantSubject[];
  readonly durationMs: number;
  /** The pod and the rules that the grant fixed earlier; absent before the decision. */
  readonly pinned?: { readonly name: string; readonly uid?: string; readonly rules?: readonly GrantedRule[] };
}

/** Plans the grant of one kind of access. Reads stores, so callers call it only after the stores have synced. */
export type Builder<Spec extends TemplateSpec = TemplateSpec> = (
  request: RequestView,
  template: TemplateView<Spec>,
  granting: Granting,
  deps: BuilderDeps,
  signal: AbortSignal,
) => Promise<Planned>;

export interface BuilderDeps {
  /** The part of the cluster that builders read. */
  readonly stores: Pick<AccessStores, 'workload' | 'workloadsIn' | 'selectorsIn' | 'pods'>;
  /** For objects without a store. */
  readonly client: Pick<Client, 'get'>;
  /** Runs plans that can take long. */
  readonly queue: PlanQueue;
  readonly clock: Clock;
  readonly accessPods: AccessPods;
}

/** Whether access pods keep the confinement of their workload, or are built as Oz builds them: ADR 0029. */
export type AccessPods = 'confined' | 'oz';

/** The fields of a request that builders use. */
export interface RequestIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * Metadata of a child: a deterministic name, the label that the janitor lists by, and the request as the owner, so that Kubernetes
 * garbage-collects the child of a request that was deleted by force.
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

/** The plan for access to `target`: Role, RoleBinding, and the Pod to create, if any. Each child carries the hash of all children. */
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
  const marked = (child: KubeObject): KubeObject => ({
    ...child,
    metadata: { ...child.metadata, annotations: { ...child.metadata.annotations, [planHashAnnotation]: hash } },
  });
  return {
    target,
    subjects: [...input.subjects],
    rules: [...rules],
    ...(pod ? { pod: marked(pod) } : {}),
    role: marked(role),
    roleBinding: marked(roleBinding),
    hash,
    ...(input.notes?.length ? { notes: input.notes } : {}),
  };
}

const NAME_LENGTH = 46;
const UID_LENGTH = 8;

/** The name of a request's Pod, Role, and RoleBinding: `<first 46 of the name>-<first 8 of the uid>-access`, at most 62 characters. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A truncated name may end in a dash or dot, which is invalid in a DNS label.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
