import assert from 'node:assert/strict';
import { chooseExecPod, type ExecPodInput, planExecAccess } from '../../../../src/access/builders/exec-access.ts';
import type { PodView } from '../../../../src/access/stores/cluster-views.ts';

const pod = (name: string, over: Partial<PodView> = {}): PodView => ({
  key: `ns/${name}`,
  uid: `uid-${name}`,
  resourceVersion: '1',
  namespace: 'ns',
  name,
  labels: { app: 'web' },
  annotations: {},
  phase: 'Running',
  ready: true,
  deleting: false,
  leaving: false,
  waiting: '',
  ...over,
});
const pods = [
  pod('web-0'),
  pod('web-1'),
  pod('web-2'),
  pod('web-pending', { phase: 'Pending' }),
  pod('web-going', { deleting: true }),
  pod('db-0', { labels: { app: 'db' } }),
  pod('alice-access', { labels: { app: 'web', 'access.drawbridge.dev/request': 'x' } }),
];
const choose = (over: Partial<ExecPodInput> = {}): string => {
  const input = { requestUid: 'u1', selector: { matchLabels: { app: 'web' } }, pods, ...over };
  const chosen = chooseExecPod(input);
  return 'pod' in chosen ? chosen.pod.name : `${chosen.violation.code}: ${chosen.violation.message}`;
};

describe('choice of the pod for exec', () => {
  it('takes the named pod', () => assert.equal(choose({ targetPod: 'web-1' }), 'web-1'));

  for (const [targetPod, expected] of [
    ['nope', /InvalidTargetPod: .*"nope" is not a pod of the template's workload/],
    ['db-0', /InvalidTargetPod: .*"db-0" is not a pod of the template's workload/],
    ['alice-access', /InvalidTargetPod: .*is not a pod/],
    ['web-pending', /InvalidTargetPod: pod web-pending is Pending, not Running/],
    ['web-going', /InvalidTargetPod: pod web-going is being deleted/],
  ] as const) {
    it(`refuses ${targetPod}`, () => assert.match(choose({ targetPod }), expected));
  }

  it('always takes the same pod for the same request, in whatever order they come', () => {
    for (let i = 0; i < 100; i++) {
      assert.equal(choose({ requestUid: `u${i}`, pods: [...pods].reverse() }), choose({ requestUid: `u${i}` }));
    }
  });

  it('spreads requests over the running pods of the workload and no others', () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 300; i++) {
      const name = choose({ requestUid: `u${i}` });
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    assert.deepEqual([...counts.keys()].sort(), ['web-0', 'web-1', 'web-2']);
    for (const count of counts.values()) assert.ok(count > 60, `${count}`);
  });

  for (const [title, over, expected] of [
    ['nothing runs', { pods: pods.slice(3) }, /NoRunningPod/],
    ['the selector is absent', { selector: undefined }, /InvalidSelector/],
    ['the selector is empty and would match every pod', { selector: {} }, /InvalidSelector/],
    [
      'the selector is broken',
      { selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
      /InvalidSelector: .*Near/,
    ],
  ] as const) {
    it(`refuses when ${title}`, () => assert.match(choose(over as Partial<ExecPodInput>), expected));
  }
});

describe('exec access builder', () => {
  it('plans a Role and RoleBinding for the one pod, pinned by uid', () => {
    const planned = planExecAccess({
      request: { namespace: 'ns', name: 'req', uid: '1a2b3c4d-1' },
      pod: { name: 'web-1', uid: 'uid-web-1' },
      subjects: [{ kind: 'Group', name: 'devs' }],
    });
    assert.ok('plan' in planned);
    const { target, pod: created, role, roleBinding, subjects } = planned.plan;
    assert.deepEqual(target, { name: 'web-1', uid: 'uid-web-1' });
    assert.equal(created, undefined);
    assert.deepEqual(subjects, [{ kind: 'Group', name: 'devs' }]);
    assert.equal(role.metadata.name, 'req-1a2b3c4d-access');
    assert.equal(role.metadata.ownerReferences?.[0]?.kind, 'ExecAccessRequest');
    assert.deepEqual(role['rules'], [
      { apiGroups: [''], resources: ['pods'], resourceNames: ['web-1'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['pods/exec'], resourceNames: ['web-1'], verbs: ['get', 'create'] },
    ]);
    assert.deepEqual(roleBinding['subjects'], [{ kind: 'Group', name: 'devs', apiGroup: 'rbac.authorization.k8s.io' }]);
  });
});
