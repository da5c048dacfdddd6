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

/** Everything that a grant will create, decided before anything is. Pure data: the same input gives the same plan and hash. */
export interface Plan {
  /** The pod that the grant opens; `uid` is set when it exists already (ExecAccess: pinned). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** Who is let in; never empty. */
  readonly subjects: GrantSubject[];
  /** What they may do, as the Role says it: on the one pod alone. */
  readonly rules: GrantedRule[];
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /** sha256 (hex) over the children without the hash annotation itself; also in their annotation `access.drawbridge.dev/plan-hash`. */
  readonly hash: string;
  /** What was lowered to the template's caps, one clause each, for the condition; absent when nothing was. */
  readonly notes?: readonly string[];
}

/** A builder either plans or says, terminally, why the template and request cannot be turned into objects. */
export type Planned = { readonly plan: Plan } | { readonly refusal: Violation };

/** What a builder needs beyond the request and its template. */
export interface Granting {
  readonly subjects: readonly GrantSubject[];
  readonly durationMs: number;
  /** The pod and the rules that the grant fixed earlier; absent while deciding. */
  readonly pinned?: { readonly name: string; readonly uid?: string; readonly rules?: readonly GrantedRule[] };
}

/** Describes the grant of one kind of access. Reads stores, so it may be asked only once they have synced. */
export type Builder<Spec extends TemplateSpec = TemplateSpec> = (
  request: RequestView,
  template: TemplateView<Spec>,
  granting: Granting,
  deps: BuilderDeps,
  signal: AbortSignal,
) => Promise<Planned>;

export interface BuilderDeps {
  /** What builders see of the cluster. */
  readonly stores: Pick<AccessStores, 'workload' | 'workloadsIn' | 'selectorsIn' | 'pods'>;
  /** For what no store keeps. */
  readonly client: Pick<Client, 'get'>;
  /** In these is planned what may take long. */
  readonly queue: PlanQueue;
  readonly clock: Clock;
  readonly accessPods: AccessPods;
}

/** Whether access pods stay as confined as their workload, or are what Oz makes: ADR 0029. */
export type AccessPods = 'confined' | 'oz';

/** What a builder needs to know of a request. */
export interface RequestIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Metadata of a child: deterministic name, owner (so that deleting the request by force leaves nothing behind) and the label that the janitor looks for. */
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

/** The plan for access to `target`: its Role and RoleBinding, the Pod if there is one to create, all marked with the hash of the whole. */
export function planChildren(input: {
  readonly request: RequestIdentity;
  readonly requestResource: Resource;
  readonly target: Plan['target'];
  readonly subjects: readonly GrantSubject[];
  /** What the Role says; default: what every grant gives. */
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

/** The one name of a request's Pod, Role and RoleBinding: `<name, cut to 46>-<first 8 of the uid>-access`, at most 62 characters. */
export function childNameOf(request: { readonly name: string; readonly uid: string }): string {
  // A cut may end in a dash or dot, which no part of a DNS name may.
  const name = request.name.slice(0, NAME_LENGTH).replace(/[-.]+$/, '');
  return `${name}-${request.uid.slice(0, UID_LENGTH)}${childNameSuffix}`;
}
