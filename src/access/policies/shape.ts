import type { KubeObject, Resource } from '../../api/object.ts';
import { validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from '../../api/resources.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';

// Four objects certify who did what. They must have these fields; CEL expressions may grow with
// each release, and say by the variable `certifies` how far they do.

/** Raise it with each rule of the policies on which the server relies. */
export const certifies = 1;

/** One of the objects whose rules the server relies on. */
export interface CertifyingObject {
  readonly resource: Resource;
  readonly name: string;
  /** Of its spec, with the defaults of the API server; all other fields but `free` must be absent. */
  readonly spec: Readonly<Record<string, unknown>>;
}

/** Of a policy; rules may change with a release. */
const free: ReadonlySet<string> = new Set(['variables', 'validations', 'auditAnnotations']);

const rule = (group: string, version: string, resources: readonly string[], operations: readonly string[]) => ({
  apiGroups: [group],
  apiVersions: [version],
  operations,
  resources,
  scope: '*',
});
const matching = (resourceRules: readonly object[], objectSelector: object = {}) => ({
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector,
  resourceRules,
});

const written = ['CREATE', 'UPDATE'];
const kinds = ['podaccessrequests', 'execaccessrequests', 'podaccesstemplates', 'execaccesstemplates'];
const access = matching([
  rule('crds.wizardofoz.co', 'v1alpha1', [...kinds, ...kinds.map((kind) => `${kind}/status`)], written),
  rule('access.drawbridge.dev', 'v1alpha1', ['accessvotes'], [...written, 'DELETE']),
  {
    ...rule('', 'v1', ['configmaps'], written),
    resourceNames: ['drawbridge-emergency-reviews', 'drawbridge-probe'],
  },
]);
const children = matching(
  [
    rule(
      '',
      'v1',
      ['pods', 'pods/status', 'pods/binding', 'bindings', 'pods/ephemeralcontainers', 'pods/resize'],
      written,
    ),
    rule('rbac.authorization.k8s.io', 'v1', ['roles', 'rolebindings'], written),
  ],
  { matchExpressions: [{ key: 'access.drawbridge.dev/request', operator: 'Exists' }] },
);

const both = (name: string, matchConstraints: object): CertifyingObject[] => [
  { resource: validatingAdmissionPolicies, name, spec: { failurePolicy: 'Fail', matchConstraints } },
  { resource: validatingAdmissionPolicyBindings, name, spec: { policyName: name, validationActions: ['Deny'] } },
];

export const certifyingObjects: readonly CertifyingObject[] = [
  ...both('drawbridge-access', access),
  ...both('drawbridge-children', children),
];

export const titleOf = ({ resource, name }: CertifyingObject): string => `${resource.kind} ${name}`;

const remedy = 'run helm upgrade';

/** In one line, with what it has, what it must have, and what to do. */
export function shapeProblem(expected: CertifyingObject, live: KubeObject | undefined): string | undefined {
  const title = titleOf(expected);
  if (!live) return `${title} does not exist; ${remedy}`;
  if (live.metadata.deletionTimestamp !== undefined)
    return `${title} is being deleted; remove its finalizers, then ${remedy}`;
  const spec = isRecord(live.spec) ? live.spec : {};
  const isPolicy = expected.resource === validatingAdmissionPolicies;
  const fields = new Set([...Object.keys(expected.spec), ...Object.keys(spec)]);
  for (const field of [...fields].sort()) {
    if (isPolicy && free.has(field)) continue;
    const [has, must] = [own(spec, field), expected.spec[field]];
    if (textOf(has) !== textOf(must))
      return `${title} has spec.${field} ${textOf(has)}, and must have ${textOf(must)}; ${remedy}`;
  }
  if (!isPolicy) return undefined;
  if (listIn(spec, 'validations').length === 0) return `${title} has no validations; ${remedy}`;
  const certified = certifiedBy(spec);
  return certified >= certifies
    ? undefined
    : `${title} has the variable certifies ${certified}, and must have at least ${certifies}: it is of an earlier release; ${remedy}`;
}

/** 0 if the policy does not say so. */
function certifiedBy(spec: unknown): number {
  const variable = listIn(spec, 'variables').find((one) => own(one, 'name') === 'certifies');
  const text = own(variable, 'expression');
  return typeof text === 'string' && /^\d{1,6}$/.test(text) ? Number(text) : 0;
}

function textOf(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return 'nothing';
  return canonicalJson(value);
}
