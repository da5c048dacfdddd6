import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { routes } from '../../../src/admission/routes.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import type { ClusterConnection } from '../../../src/client/cluster-connection.ts';
import { bypassChecks, isBuiltIn } from '../../../src/client/doctor-bypasses.ts';
import {
  expectedPolicies,
  expectedWebhooks,
  policyProblems,
  webhookProblems,
} from '../../../src/client/doctor-checks.ts';
import { subjectsIn } from '../../../src/client/rbac-view.ts';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const object = (spec: object, fields: object = {}): KubeObject =>
  ({ apiVersion: 'v1', kind: 'X', metadata: { name: 'drawbridge-access' }, spec, ...fields }) as unknown as KubeObject;

describe('the doctor', () => {
  const controller = 'system:controller:job-controller';
  const subjects: readonly (readonly [subject: string, binding: string, role: string, builtIn: boolean])[] = [
    ['Group system:masters', 'cluster-admin', 'cluster-admin', true],
    ['User system:kube-controller-manager', 'any', 'any', true],
    ['User system:kube-scheduler', 'any', 'any', true],
    ['ServiceAccount kube-system/job-controller', controller, controller, true],
    ['ServiceAccount kube-system/job-controller', controller, 'cluster-admin', false],
    ['ServiceAccount kube-system/job-controller', 'mine', controller, false],
    ['ServiceAccount kube-system/other', controller, controller, false],
    ['ServiceAccount kube-system/helm', 'helm', 'cluster-admin', false],
    ['ServiceAccount default/job-controller', controller, controller, false],
    ['User kube-system/job-controller', controller, controller, false],
    ['Group system:authenticated', 'cluster-admin', 'cluster-admin', false],
    ['Group system:unauthenticated', 'cluster-admin', 'cluster-admin', false],
    ['User system:anonymous', 'cluster-admin', 'cluster-admin', false],
    ['User system:masters', 'cluster-admin', 'cluster-admin', false],
  ];
  for (const [text, binding, role, builtIn] of subjects) {
    it(`${builtIn ? 'does not list' : 'lists'} ${text} by ${binding} to ${role}`, () => {
      const [kind = '', name = ''] = text.split(' ');
      assert.equal(isBuiltIn({ subject: { kind, name }, binding, role: `ClusterRole ${role}`, by: '' }), builtIn);
    });
  }

  const bound: readonly (readonly [kind: string, name: string, subject: string])[] = [
    ['ServiceAccount', 'bot', 'ServiceAccount ops/bot'],
    ['User', 'system:serviceaccount:ops:bot', 'ServiceAccount ops/bot'],
    ['User', 'system:serviceaccount:ops', 'User system:serviceaccount:ops'],
    ['Group', 'system:serviceaccount:ops:bot', 'Group system:serviceaccount:ops:bot'],
  ];
  for (const [kind, name, subject] of bound) {
    it(`knows the ${kind} ${name} of a binding as ${subject}`, () => {
      const binding = object(
        {},
        { subjects: [{ kind, name, ...(kind === 'ServiceAccount' ? { namespace: 'ops' } : {}) }] },
      );
      assert.deepEqual(subjectsIn(binding), [{ kind: subject.split(' ')[0], name: subject.split(' ')[1] }]);
    });
  }

  it('lists a controller that a RoleBinding binds', () => {
    const subject = { kind: 'ServiceAccount', name: 'kube-system/job-controller' };
    const held = { subject, binding: controller, role: `ClusterRole ${controller}`, by: '' };
    assert.equal(isBuiltIn({ ...held, namespace: 'payments' }), false);
  });

  const clusterScoped: readonly (readonly [check: string, apiGroup: string, resource: string, verb: string])[] = [
    ['nodes/proxy', '', 'nodes/proxy', 'get'],
    ['impersonate', '', 'users', 'impersonate'],
  ];
  for (const [name, apiGroup, resource, verb] of clusterScoped) {
    it(`lists ${name} by a ClusterRoleBinding only, because a RoleBinding does not grant it`, async () => {
      const rules = [{ apiGroups: [apiGroup], resources: [resource], verbs: [verb] }];
      const subjects = [{ kind: 'User', name: 'mallory' }];
      const roleRef = { kind: 'ClusterRole', name: 'wide' };
      const objects: Readonly<Record<string, readonly object[]>> = {
        clusterroles: [{ metadata: { name: 'wide' }, rules }],
        clusterrolebindings: [{ metadata: { name: 'all' }, roleRef, subjects }],
        rolebindings: [{ metadata: { name: 'one', namespace: 'payments' }, roleRef, subjects }],
      };
      const list = async ({ plural }: { plural: string }) => ({ items: objects[plural] ?? [] });
      const connection = { cluster: { client: { list } } } as unknown as ClusterConnection;
      const options = { serverNamespace: 'drawbridge-system', clock: new SimulatedClock() };
      const results = await bypassChecks.find((check) => check.name === name)?.faults(connection, options);
      assert.deepEqual(
        results?.map((fault) => fault.replace(/^.*\(/, '(')),
        ['(ClusterRoleBinding all)'],
      );
    });
  }

  it('expects the webhooks of access that the server serves, with their failurePolicy', () => {
    for (const type of ['mutating', 'validating'] as const) {
      const served = new Map<string, Record<string, string>>();
      for (const { feature, resource, name, failurePolicy, failOpen = [], ...route } of routes) {
        if (feature !== 'access' || route.type !== type) continue;
        const open = failOpen.length === 0 ? {} : { [`${failOpen.join('-').toLowerCase()}.${name}`]: 'Ignore' };
        served.set(resource.plural, { ...served.get(resource.plural), [name]: failurePolicy, ...open });
      }
      assert.deepEqual(expectedWebhooks[type], Object.fromEntries(served));
    }
  });

  const clientConfig = { caBundle: 'x' };
  const expected = { 'a.kb.io': 'Fail', 'delete.a.kb.io': 'Ignore' } as const;
  const both = (fields: object) => [
    { name: 'a.kb.io', clientConfig, ...fields },
    { name: 'delete.a.kb.io', clientConfig, failurePolicy: 'Ignore' },
  ];
  const webhooks: readonly (readonly [what: string, webhooks: readonly object[], fault: RegExp | undefined])[] = [
    ['fail closed', both({ failurePolicy: 'Fail' }), undefined],
    ['have no failurePolicy', both({}), undefined],
    ['fail open', both({ failurePolicy: 'Ignore' }), /failurePolicy Ignore for webhook a\.kb\.io/],
    ['are absent', [], /has no webhook a\.kb\.io/],
    ['have no caBundle', both({ clientConfig: {} }), /has no caBundle for webhook a\.kb\.io/],
  ];
  for (const [what, list, fault] of webhooks) {
    it(`finds ${fault ? 'a fault' : 'nothing'} if webhooks ${what}`, () => {
      const faults = webhookProblems(object({}, { webhooks: list }), expected).join('; ');
      if (fault) assert.match(faults, fault);
      else assert.equal(faults, '');
    });
  }

  const key = 'kubernetes.io/metadata.name';
  const selectors: readonly (readonly [what: string, expressions: readonly object[], probed: string])[] = [
    ['serve all namespaces', [], 'payments'],
    ['serve the namespaces of the chart value', [{ key, operator: 'In', values: ['shop', 'web'] }], 'shop'],
    ['leave out a namespace', [{ key, operator: 'NotIn', values: ['kube-system'] }], 'payments'],
  ];
  for (const [what, matchExpressions, probed] of selectors) {
    it(`probes namespace ${probed} if the webhooks ${what}`, async () => {
      const webhooks = [{ name: 'vpodaccessrequest.kb.io', namespaceSelector: { matchExpressions } }];
      const cluster = await ScriptedCluster.open({
        validatingwebhookconfigurations: [{ metadata: { name: 'drawbridge-podaccessrequests' }, webhooks }],
      });
      try {
        await cluster.run(['doctor']);
        const probes = cluster.writes.map(({ path }) => path).filter((path) => path.endsWith('/podaccessrequests'));
        assert.deepEqual(probes, [`/apis/crds.wizardofoz.co/v1alpha1/namespaces/${probed}/podaccessrequests`]);
      } finally {
        await cluster.close();
      }
    });
  }

  it('expects the admission policies of access in the chart', () => {
    const chart = readFileSync('charts/drawbridge/templates/policies.yaml', 'utf8');
    const named = [...chart.matchAll(/^kind: ValidatingAdmissionPolicy\nmetadata:\n {2}name: (\S+)$/gm)];
    assert.deepEqual(named.map(([, name]) => name).sort(), [...expectedPolicies, 'drawbridge-webhooks'].sort());
  });

  const [policyName, actions] = ['drawbridge-access', { validationActions: ['Deny'] }];
  const policies: readonly (readonly [what: string, policy: object, binding: object, found: number])[] = [
    ['is bound with Deny', {}, actions, 0],
    ['is bound with defaults of matchResources', {}, { ...actions, matchResources: { objectSelector: {} } }, 0],
    ['is bound with Audit', {}, { validationActions: ['Audit'] }, 1],
    ['has failurePolicy Ignore', { failurePolicy: 'Ignore' }, actions, 1],
    ['is another', {}, { ...actions, policyName: 'not-drawbridge' }, 1],
    ['is bound narrowly', {}, { ...actions, matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } }, 1],
  ];
  for (const [what, policy, binding, found] of policies) {
    it(`finds ${found} faults if a policy ${what}`, () => {
      const bindings = [object({ policyName, ...binding })];
      assert.equal(policyProblems(policyName, [object(policy)], bindings).length, found);
    });
  }

  it('finds a policy that does not exist', () => {
    assert.match(policyProblems(policyName, [], []).join(), /drawbridge-access does not exist/);
  });
});
