import assert from 'node:assert/strict';
import {
  buildExecAccess,
  chooseExecPod,
  type ExecPodInput,
  planExecAccess,
} from '../../../../src/access/builders/exec-access.ts';
import type { Planned } from '../../../../src/access/builders/plan.ts';
import { PlanQueue } from '../../../../src/access/builders/plan-budget.ts';
import type { RequestView, TemplateView } from '../../../../src/access/stores/access-views.ts';
import type { PodView } from '../../../../src/access/stores/cluster-views.ts';
import type { ExecAccessTemplateSpec } from '../../../../src/api/access/exec-access.ts';
import type { KubeObject, LabelSelector } from '../../../../src/api/object.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { podView, workloadView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const replicaSet = (uid: string) => ({ kind: 'ReplicaSet', name: `web-${uid}`, uid });

const pod = (name: string, over: Partial<PodView> = {}): PodView =>
  podView({ name, uid: `uid-${name}`, labels: { app: 'web' }, controller: replicaSet('rs'), ...over });
const pods = [
  pod('web-0'),
  pod('web-1'),
  pod('web-2'),
  pod('web-pending', { phase: 'Pending' }),
  pod('web-going', { deleting: true }),
  pod('db-0', { labels: { app: 'db' } }),
  pod('job-0', { controller: { kind: 'Job', name: 'job', uid: 'job' } }),
  pod('stray-0', { controller: replicaSet('strange') }),
  (({ controller: _, ...alone }) => alone)(pod('alone')),
  pod('alice-access', { labels: { app: 'web', 'access.drawbridge.dev/request': 'x' } }),
];
const deployment = (selector: LabelSelector | undefined = { matchLabels: { app: 'web' } }) => ({
  kind: 'Deployment',
  name: 'web',
  selector,
});
const choose = (over: Partial<ExecPodInput> = {}): string => {
  const input = { requestUid: 'u1', workload: deployment(), pods, controllers: new Set(['rs']), ...over };
  const chosen = chooseExecPod(input);
  return 'pod' in chosen ? chosen.pod.name : `${chosen.violation.code}: ${chosen.violation.message}`;
};

describe('choice of the pod for exec', () => {
  it('chooses the named pod', () => assert.equal(choose({ targetPod: 'web-1' }), 'web-1'));

  for (const [targetPod, expected] of [
    ['nope', /InvalidTargetPod: .*"nope" is not a pod of the template's workload/],
    ['db-0', /InvalidTargetPod: .*"db-0" is not a pod of the template's workload/],
    ['job-0', /InvalidTargetPod: .*"job-0" is not a pod of the template's workload/],
    ['stray-0', /InvalidTargetPod: .*is not a pod/],
    ['alone', /InvalidTargetPod: .*is not a pod/],
    ['alice-access', /InvalidTargetPod: .*is not a pod/],
    ['web-pending', /InvalidTargetPod: pod web-pending is Pending, not Running/],
    ['web-going', /InvalidTargetPod: pod web-going is being deleted/],
  ] as const) {
    it(`rejects ${targetPod}`, () => assert.match(choose({ targetPod }), expected));
  }

  it('always chooses the same pod for the same request, whatever the order of the pods', () => {
    for (let i = 0; i < 100; i++) {
      assert.equal(choose({ requestUid: `u${i}`, pods: [...pods].reverse() }), choose({ requestUid: `u${i}` }));
    }
  });

  it('distributes requests over the running pods of the workload', () => {
    const counts = new Map<string, number>();
    for (let i = 0; i < 300; i++) {
      const name = choose({ requestUid: `u${i}` });
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    assert.deepEqual([...counts.keys()].sort(), ['web-0', 'web-1', 'web-2']);
    for (const count of counts.values()) assert.ok(count > 60, `${count}`);
  });

  for (const [title, over, expected] of [
    ['no pod runs', { pods: pods.slice(3) }, /NoRunningPod: Deployment web has no running pod; .* scale it up$/],
    [
      'no pod of a DaemonSet runs',
      { pods: [], workload: { ...deployment(), kind: 'DaemonSet' } },
      /NoRunningPod: .*; wait for its rollout$/,
    ],
    ['the workload controls no running pod', { controllers: new Set(['other']) }, /NoRunningPod/],
    ['the selector is absent', { workload: { ...deployment(), selector: undefined } }, /InvalidTemplate/],
    ['the selector is empty and would match every pod', { workload: deployment({}) }, /InvalidTemplate/],
    [
      'the selector is broken',
      { workload: deployment({ matchExpressions: [{ key: 'a', operator: 'Near' }] }) },
      /InvalidTemplate: the selector of Deployment web is invalid: .*Near/,
    ],
  ] as const) {
    it(`fails if ${title}`, () => assert.match(choose(over as Partial<ExecPodInput>), expected));
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

describe('the pods of a workload', () => {
  const replicaSetOf = (uid: string, controller: string | undefined): KubeObject =>
    ({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        namespace: 'ns',
        name: `web-${uid}`,
        uid,
        // An owner that is not the controller is ignored.
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'w' },
          ...(controller
            ? [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: controller, controller: true }]
            : []),
        ],
      },
    }) as unknown as KubeObject;

  /** The plan for a pod, or the violation; and the ReplicaSets that were read for it. */
  async function planning(
    kind: string,
    pods: readonly PodView[],
    replicaSets: readonly KubeObject[],
    targetPod?: string,
  ): Promise<{ planned: Planned; read: string[] }> {
    const read: string[] = [];
    const clock = new SimulatedClock();
    const planned = await buildExecAccess(
      { namespace: 'ns', name: 'req', uid: 'u1', spec: { templateName: 't', targetPod } } as unknown as RequestView,
      {
        namespace: 'ns',
        spec: { accessConfig: {}, controllerTargetRef: { apiVersion: 'apps/v1', kind, name: 'web' } },
      } as unknown as TemplateView<ExecAccessTemplateSpec>,
      { subjects: [{ kind: 'User', name: 'alice' }], durationMs: 60_000 },
      {
        stores: {
          workload: () => (kind === 'missing' ? undefined : workloadView('web', { kind, uid: 'w' })),
          workloadsIn: () => [],
          selectorsIn: () => [],
          pods: { byIndex: () => [...pods] } as never,
        },
        client: {
          get: async ({ kind: resource }, { name }) => {
            read.push(name);
            const found = replicaSets.find((one) => one.metadata.name === name);
            if (found) return found;
            throw new ApiError(404, 'NotFound', `${resource} ${name} not found`);
          },
        },
        queue: new PlanQueue(clock),
        clock,
        accessPods: 'confined',
      },
      AbortSignal.abort(),
    );
    return { planned, read: read.sort() };
  }
  /** The chosen pod, or the reason why there is none, and the ReplicaSets that were read for it. */
  async function choosing(...args: Parameters<typeof planning>): Promise<[chosen: string, read: string[]]> {
    const { planned, read } = await planning(...args);
    return ['plan' in planned ? planned.plan.target.name : planned.violation.code, read];
  }

  for (const kind of ['Deployment', 'Rollout']) {
    it(`of kind ${kind} are those of the ReplicaSets that it controls; each ReplicaSet is read once`, async () => {
      const pods = [
        pod('a', { controller: replicaSet('other') }),
        pod('b', { controller: replicaSet('rs') }),
        pod('c', { controller: replicaSet('rs'), deleting: true }),
        pod('d', { controller: replicaSet('gone') }),
      ];
      const found = await choosing(kind, pods, [replicaSetOf('rs', 'w'), replicaSetOf('other', 'x')]);
      assert.deepEqual(found, ['b', ['web-gone', 'web-other', 'web-rs']]);
    });
  }

  it('are none if the workload does not exist, and its selector is not blamed', async () =>
    assert.deepEqual(await choosing('missing', [pod('a')], []), ['TargetNotFound', []]));

  it('exclude those of a ReplicaSet that the workload owns but does not control', async () =>
    assert.deepEqual(await choosing('Deployment', [pod('a')], [replicaSetOf('rs', undefined)]), [
      'NoRunningPod',
      ['web-rs'],
    ]));

  it('exclude those of a recreated ReplicaSet of the same name', async () => {
    const again = { ...replicaSetOf('rs', 'w'), metadata: { ...replicaSetOf('rs', 'w').metadata, uid: 'later' } };
    assert.deepEqual(await choosing('Deployment', [pod('a')], [again], 'a'), ['InvalidTargetPod', ['web-rs']]);
  });

  for (const kind of ['StatefulSet', 'DaemonSet']) {
    it(`of kind ${kind} are those that it controls itself, without a read`, async () => {
      const pods = [
        pod('a', { controller: { kind, name: 'web', uid: 'x' } }),
        pod('b', { controller: { kind, name: 'web', uid: 'w' } }),
      ];
      assert.deepEqual(await choosing(kind, pods, []), ['b', []]);
    });
  }

  it('cost at most 16 reads, however many ReplicaSets exist', async () => {
    const pods = Array.from({ length: 40 }, (_, index) =>
      pod(`pod-${index}`, { controller: replicaSet(`rs-${index}`) }),
    );
    const [chosen, read] = await choosing('Deployment', pods, []);
    assert.deepEqual([chosen, read.length], ['NoRunningPod', 16]);
  });

  it('exclude those of a ReplicaSet with an invalid name, without a read', async () => {
    const pods = ['../../secrets/x', '..', '', 'x'.repeat(254)].map((name, index) =>
      pod(`pod-${index}`, { controller: { kind: 'ReplicaSet', name, uid: 'rs' } }),
    );
    assert.deepEqual(await choosing('Deployment', pods, []), ['NoRunningPod', []]);
  });

  describe('named by a request that came too late', () => {
    const old = [replicaSetOf('old', 'w'), replicaSetOf('new', 'w')];
    const web = (uid: string) => ({ controller: replicaSet(uid) });
    const rolledOut = [
      pod('web-new-b', web('new')),
      pod('web-new-a', web('new')),
      pod('web-new-c', { ...web('new'), phase: 'Pending' }),
      pod('web-new-d', { ...web('new'), deleting: true }),
      pod('web-stray', web('strange')),
    ];
    const refusal = async (...args: Parameters<typeof planning>): Promise<string> => {
      const { planned } = await planning(...args);
      return 'violation' in planned ? planned.violation.message : '';
    };

    for (const [name, found] of [
      ['web-old-a', /^spec\.targetPod "web-old-a" is not a pod of .*; name one of its running pods, or leave /],
      ['web-stray', /^spec\.targetPod "web-stray" is not a pod of the template's workload; /],
      ['web-new-d', /^pod web-new-d is being deleted, not Running; name another or leave spec\.targetPod out$/],
    ] as const) {
      it(`are refused: ${name}`, async () => assert.match(await refusal('Deployment', rolledOut, old, name), found));
    }

    it('may come back if it is a StatefulSet', async () => {
      const message = await refusal('StatefulSet', rolledOut, [], 'web-0');
      assert.match(message, /name one of its running pods, or leave spec\.targetPod out$/);
    });

    it('may run soon if they are pending', async () => {
      assert.match(await refusal('Deployment', rolledOut, old, 'web-new-c'), /leave spec\.targetPod out$/);
    });
  });

  it('cost one read if the request names a pod', async () => {
    const pods = ['a', 'b', 'c'].map((name) => pod(name, { controller: replicaSet(name) }));
    assert.deepEqual(await choosing('Deployment', pods, [replicaSetOf('b', 'w')], 'b'), ['b', ['web-b']]);
  });
});
