import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import { planHashAnnotation, requestLabel } from '../../api/access/names.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta, type Resource } from '../../api/object.ts';
import { roleOf } from '../../grants/role.ts';
import { roleBindingOf } from '../../grants/role-binding.ts';
import { toRbacSubject } from '../../grants/subjects.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { baseRules, confinedTo } from '../policy/granted-rules.ts';
import { childNameOf } from './child-names.ts';
import type { Plan } from './plan.ts';

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
