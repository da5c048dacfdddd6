import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { routes } from '../../../src/admission/routes.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import type { ClusterConnection } from '../../../src/client/cluster-connection.ts';
import { bypassChecks, isBuiltIn } from '../../../src/client/doctor-bypasses.ts';
import { expectedWebhooks, webhookProblems } from '../../../src/client/doctor-checks.ts';
import { openGrants } from '../../../src/client/doctor-grants.ts';
import { expectedPolicies, policyProblems } from '../../../src/client/doctor-policies.ts';
import { type BoundPermissions, subjectsIn } from '../../../src/client/rbac-view.ts';
import type { RbacRule } from '../../../src/rbac/rule-cover.ts';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { request } from './objects.ts';

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
    ['User kube-apiserver-kubelet-client', 'kubeadm:apiserver-kubelet-client', 'system:kubelet-api-admin', true],
    ['User kube-apiserver-kubelet-client', 'kubelet-api', 'system:kubelet-api-admin', true],
    ['User kube-apiserver-kubelet-client', 'kubelet-api', 'cluster-admin', false],
    ['Group kube-apiserver-kubelet-client', 'kubelet-api', 'system:kubelet-api-admin', false],
    ['User mallory', 'kubeadm:apiserver-kubelet-client', 'system:kubelet-api-admin', false],
    ['Group kubeadm:cluster-admins', 'kubeadm:cluster-admins', 'cluster-admin', true],
    ['User kubeadm:cluster-admins', 'kubeadm:cluster-admins', 'cluster-admin', false],
    ['Group system:authenticated', 'kubeadm:cluster-admins', 'cluster-admin', false],
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

  it('lists the client of the kubelet if a RoleBinding binds it', () => {
    const subject = { kind: 'User', name: 'kube-apiserver-kubelet-client' };
    const held = { subject, binding: 'kubelet-api', role: 'ClusterRole system:kubelet-api-admin', by: '' };
    assert.equal(isBuiltIn({ ...held, namespace: 'payments' }), false);
  });

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

  const [early, late] = ['2026-11-21T08:59:30Z', '2026-11-21T08:50:00Z'];
  const [grant, held] = [{ rules: [], expiresAt: late }, [{ kind: 'User', name: 'alice' }]];
  const open = { ready: true, grant };
  const grants: readonly (readonly [what: string, request: object | undefined, end: string, subjects?: object[]])[] = [
    ['is open', request('a', { ...open, expiresAt: '2026-11-21T09:30:00Z' }), ''],
    ['has just ended', request('a', { ...open, expiresAt: early }), ''],
    ['ended long ago', request('a', open), `should have ended at ${late}`],
    ['was revoked', request('a', { ...open, expiresAt: early }, { revoked: true }), 'was revoked'],
    [
      'is being deleted',
      request('a', { ...open, expiresAt: early }, {}, { deletionTimestamp: early }),
      `was deleted at ${early}`,
    ],
    [
      'is closed by its status',
      request('a', { ...open, expiresAt: early, ended: { at: late, how: 'Revoked', reason: 'TargetPodGone' } }),
      `ended at ${late} (TargetPodGone)`,
    ],
    ['ended long ago, but has no subjects', request('a', open), '', []],
    ['has no request', undefined, 'has no request and may still grant access'],
  ];
  for (const [what, found, end, bound = held] of grants) {
    it(`finds ${end === '' ? 'nothing' : 'a RoleBinding that still grants access'} if access ${what}`, async () => {
      const metadata = {
        name: 'a-access',
        namespace: 'payments',
        labels: { 'access.drawbridge.dev/request': 'uid-a' },
      };
      const objects: Readonly<Record<string, readonly object[]>> = {
        rolebindings: [{ metadata, subjects: bound }],
        podaccessrequests: found ? [found] : [],
      };
      const list = async ({ plural }: { plural: string }) => ({ items: objects[plural] ?? [] });
      const connection = { cluster: { client: { list } }, serverAheadMs: () => undefined };
      const options = { serverNamespace: 'drawbridge-system', clock: new SimulatedClock() };
      const faults = await openGrants.faults(connection as unknown as ClusterConnection, options);
      assert.equal(faults.length, end === '' ? 0 : 1);
      const text = faults.join();
      assert.ok(text.includes(end), text);
      if (found && end !== '')
        for (const part of [
          'RoleBinding payments/a-access still grants',
          'kubectl describe podaccessrequest a -n payments',
          'list payments again',
        ])
          assert.ok(text.includes(part), text);
    });
  }

  const policiesOf = (file: string): string[] => {
    const chart = readFileSync(`charts/drawbridge/templates/${file}`, 'utf8');
    return [...chart.matchAll(/^kind: ValidatingAdmissionPolicy\nmetadata:\n {2}name: (\S+)$/gm)].map(
      ([, name = '']) => name,
    );
  };
  const boundTo = (account: string, rules: readonly RbacRule[]) => ({
    subject: { kind: 'ServiceAccount', name: `drawbridge-system/${account}` },
    rules,
    binding: account,
    role: `ClusterRole ${account}`,
    by: '',
  });
  const writesWebhooks = {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
    resourceNames: ['drawbridge-podaccessrequests'],
    verbs: ['patch'],
  };
  const [server, gateway, binding] = [
    boundTo('drawbridge', [writesWebhooks]),
    boundTo('drawbridge-gateway', []),
    boundTo('drawbridge-binding', []),
  ];
  const ofAccess = policiesOf('policies.yaml');
  const features: readonly (readonly [what: string, held: readonly BoundPermissions[], policies: readonly string[]])[] =
    [
      ['access', [server], ofAccess],
      [
        'access without a certificate of its own',
        [boundTo('drawbridge', [])],
        ofAccess.filter((name) => name !== 'drawbridge-webhooks'),
      ],
      ['the gateway', [server, gateway], [...ofAccess, ...policiesOf('gateway-policies.yaml')]],
      ['binding', [server, binding], [...ofAccess, ...policiesOf('binding-policies.yaml')]],
    ];
  for (const [what, held, expected] of features) {
    it(`expects all ${expected.length} admission policies that the chart installs with ${what}`, () => {
      assert.deepEqual(expectedPolicies(held, 'drawbridge-system').sort(), [...expected].sort());
    });
  }

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
