import type { KubeObject, Resource } from '../api/object.ts';
import { validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from '../api/resources.ts';
import { listIn, own, sameJson, stringMap, strings } from '../kit/json-value.ts';
import { uncovered } from '../rbac/rule-cover.ts';
import type { Check } from './doctor-check.ts';
import { type BoundPermissions, cachedPermissions } from './rbac-view.ts';

const always = ['access', 'server', 'baseline', 'children', 'gateway'];
/** By the ServiceAccount of the feature. */
const ofFeatures: Readonly<Record<string, readonly string[]>> = {
  'drawbridge-gateway': ['sessions', 'replicas', 'apiservice'],
  'drawbridge-binding': ['bundled-bindings'],
};
/** Only with `certificates.mode: own`; the policy `drawbridge-webhooks` limits it. */
const writesWebhooks = {
  apiGroups: ['admissionregistration.k8s.io'],
  resources: ['validatingwebhookconfigurations'],
  resourceNames: ['drawbridge-podaccessrequests'],
  verbs: ['patch'],
};

/** Of the installed features, by what their ServiceAccounts may do; not `drawbridge-uninstalling`. */
export function expectedPolicies(held: readonly BoundPermissions[], serverNamespace: string): string[] {
  const accounts = held.filter(({ subject }) => subject.kind === 'ServiceAccount');
  const of = (name: string) => accounts.filter(({ subject }) => subject.name === `${serverNamespace}/${name}`);
  const ownCertificate = of('drawbridge').some(({ rules }) => uncovered(rules, [writesWebhooks]).length === 0);
  const features = Object.entries(ofFeatures).flatMap(([account, names]) => (of(account).length > 0 ? names : []));
  return [...always, ...(ownCertificate ? ['webhooks'] : []), ...features].map((name) => `drawbridge-${name}`);
}

export const policies: Check = {
  name: 'policies',
  ok: 'those of all installed features exist, and are bound with Deny',
  async faults(connection, { serverNamespace }) {
    const list = async (resource: Resource): Promise<KubeObject[]> =>
      (await connection.cluster.client.list(resource)).items;
    const [held, admissionPolicies, bindings] = await Promise.all([
      cachedPermissions(connection),
      list(validatingAdmissionPolicies),
      list(validatingAdmissionPolicyBindings),
    ]);
    return expectedPolicies(held, serverNamespace).flatMap((name) => policyProblems(name, admissionPolicies, bindings));
  },
};

/** With this, the chart exempts namespaces from the policy `drawbridge-baseline`. */
const privilegedNamespaces = { key: 'access.drawbridge.dev/allow-privileged', operator: 'DoesNotExist' };

/** Whether a policy binding excludes any object. `allowed`: expressions of the chart itself. */
function isNarrowed(matchResources: unknown, allowed: readonly object[]): boolean {
  const [namespaces, objects] = ['namespaceSelector', 'objectSelector'].map((field) => own(matchResources, field));
  const resourceRules = ['resourceRules', 'excludeResourceRules'].flatMap((field) => listIn(matchResources, field));
  return (
    resourceRules.length > 0 ||
    Object.keys(objects ?? {}).length > 0 ||
    Object.keys(stringMap(own(namespaces, 'matchLabels'))).length > 0 ||
    listIn(namespaces, 'matchExpressions').some((one) => !allowed.some((expression) => sameJson(one, expression)))
  );
}

/** Each is a complete message. */
export function policyProblems(
  name: string,
  admissionPolicies: readonly KubeObject[],
  bindings: readonly KubeObject[],
): string[] {
  const policy = admissionPolicies.find(({ metadata }) => metadata.name === name);
  if (!policy) return [`ValidatingAdmissionPolicy ${name} does not exist; install it with the chart`];
  const problems: string[] = [];
  const failurePolicy = String(own(policy.spec, 'failurePolicy') ?? 'Fail');
  const policyName = `ValidatingAdmissionPolicy ${name}`;
  if (failurePolicy !== 'Fail')
    problems.push(`${policyName} has failurePolicy ${failurePolicy}; Fail is required; run helm upgrade`);
  const denies = bindings.some(
    ({ spec }) =>
      own(spec, 'policyName') === name &&
      strings(own(spec, 'validationActions')).includes('Deny') &&
      !isNarrowed(own(spec, 'matchResources'), name === 'drawbridge-baseline' ? [privilegedNamespaces] : []),
  );
  if (!denies) {
    const problem = 'has no ValidatingAdmissionPolicyBinding with the action Deny that applies everywhere';
    problems.push(`${policyName} ${problem}; run helm upgrade`);
  }
  return problems;
}
