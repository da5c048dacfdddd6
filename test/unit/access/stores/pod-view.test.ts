import assert from 'node:assert/strict';
import { viewPod } from '../../../../src/access/stores/cluster-views.ts';
import type { KubeObject } from '../../../../src/api/object.ts';

const pod = (status?: unknown, metadata: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'ns', uid: 'p-1', resourceVersion: '7', ...metadata },
  ...(status === undefined ? {} : { status }),
});
const readyIs = (status: string, message?: string) => [{ type: 'Ready', status, ...(message && { message }) }];
const waits = (reason: string, message?: string, last?: object) => ({
  phase: 'Pending',
  containerStatuses: [
    {
      name: 'app',
      state: { waiting: { reason, ...(message && { message }) } },
      ...(last && { lastState: { terminated: last } }),
    },
  ],
});
const seeEvents = '; see the Events of the Pod with: kubectl describe pod web-0 -n ns';
const pullError = 'failed to pull and unpack image "web": not found';
const waitingOf = (status?: unknown): string | undefined => viewPod(pod(status))?.notReadyReason;

describe('the view of a Pod', () => {
  it('keeps the fields for decisions and drops the manifest in the annotations', () => {
    const annotations = { team: 'payments', 'kubectl.kubernetes.io/last-applied-configuration': '{…}' };
    const status = { phase: 'Running', conditions: readyIs('True') };
    assert.deepEqual(viewPod(pod(status, { labels: { app: 'web' }, annotations })), {
      key: 'ns/web-0',
      uid: 'p-1',
      resourceVersion: '7',
      namespace: 'ns',
      name: 'web-0',
      labels: { app: 'web' },
      annotations: { team: 'payments' },
      phase: 'Running',
      ready: true,
      deleting: false,
      nothingToRevoke: false,
      notReadyReason: '',
    });
  });

  it('has its controller, and no other owners', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'notes', uid: 'c-1' };
    const controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r-1', controller: true };
    const controllerOf = (...ownerReferences: object[]) => viewPod(pod(undefined, { ownerReferences }))?.controller;
    assert.deepEqual(controllerOf(owner, controller), { kind: 'ReplicaSet', name: 'web-1', uid: 'r-1' });
    assert.equal(controllerOf(owner, { ...controller, controller: false }), undefined);
  });

  it('is not ready while it is deleted, although its containers still run', () => {
    const view = viewPod(pod({ phase: 'Running', conditions: readyIs('True') }, { deletionTimestamp: 'now' }));
    assert.deepEqual(
      [view?.ready, view?.deleting, view?.notReadyReason],
      [false, true, 'the Pod is being deleted, and access ends with it'],
    );
  });

  const deletions: [string, object, boolean][] = [
    ['has something to revoke without a deletion', {}, false],
    ['has nothing to revoke once it was deleted', { deletionTimestamp: 'now', deletionGracePeriodSeconds: 1 }, true],
    [
      'has something to revoke during a grace period of an hour',
      { deletionTimestamp: 'later', deletionGracePeriodSeconds: 3600 },
      false,
    ],
  ];
  for (const [title, metadata, nothingToRevoke] of deletions) {
    it(title, () => assert.equal(viewPod(pod({}, metadata))?.nothingToRevoke, nothingToRevoke));
  }

  for (const missing of ['uid', 'resourceVersion', 'namespace']) {
    it(`is undefined without ${missing}`, () => assert.equal(viewPod(pod({}, { [missing]: undefined })), undefined));
  }

  const stories: [string, unknown, string][] = [
    ['without a status', undefined, 'the Pod is Pending'],
    [
      'that is not ready',
      { phase: 'Running', conditions: readyIs('False', 'containers with unready status: [shell]') },
      `the Pod is Running, but not Ready: containers with unready status: [shell]${seeEvents}`,
    ],
    [
      'that is not ready and does not say why',
      { phase: 'Running', conditions: readyIs('False') },
      `the Pod is Running, but not Ready: its condition Ready has no message${seeEvents}`,
    ],
    [
      'whose image cannot be pulled',
      waits('ImagePullBackOff', `Back-off pulling image "web": ErrImagePull: ${pullError}`),
      `container app: ImagePullBackOff: ${pullError}${seeEvents}`,
    ],
    [
      'whose image is pulled again, with the same text',
      waits('ErrImagePull', pullError),
      `container app: ImagePullBackOff: ${pullError}${seeEvents}`,
    ],
    [
      'whose Secret is missing',
      waits('CreateContainerConfigError', 'secret "tls" not found'),
      `container app: CreateContainerConfigError: secret "tls" not found${seeEvents}`,
    ],
    [
      'whose kubelet sends control characters',
      waits('RunContainerError\n', 'red \u001b[31m\r\nalert'),
      `container app: RunContainerError?: red ?[31m??alert${seeEvents}`,
    ],
    [
      'that is killed again and again, without the delay, which changes',
      waits('CrashLoopBackOff', 'back-off 40s restarting failed container', { reason: 'OOMKilled', exitCode: 137 }),
      `container app: CrashLoopBackOff after OOMKilled (exit code 137)${seeEvents}`,
    ],
    [
      'whose command does not exist',
      waits('CrashLoopBackOff', 'back-off 10s', {
        reason: 'StartError',
        exitCode: 128,
        message: 'exec: "x": not found',
      }),
      `container app: CrashLoopBackOff after StartError (exit code 128): exec: "x": not found${seeEvents}`,
    ],
    [
      'whose container ended, without what it wrote into its message',
      waits('CrashLoopBackOff', 'back-off 10s', { reason: 'Error', exitCode: 1, message: 'password: hunter2' }),
      `container app: CrashLoopBackOff after Error (exit code 1)${seeEvents}`,
    ],
    [
      'whose init container failed, before its containers',
      {
        initContainerStatuses: [{ name: 'init', state: { terminated: { reason: 'Error' } } }],
        containerStatuses: [{ name: 'app', state: { waiting: { reason: 'PodInitializing' } } }],
      },
      `container init: Error${seeEvents}`,
    ],
    [
      'whose init container is through',
      {
        initContainerStatuses: [{ name: 'init', state: { terminated: { reason: 'Completed' } } }],
        containerStatuses: [{ name: 'app', state: { waiting: {} } }],
      },
      `container app: not running${seeEvents}`,
    ],
    [
      'that has failed',
      { phase: 'Failed', reason: 'DeadlineExceeded', message: 'Pod was active on the node' },
      'the Pod has ended: Failed: DeadlineExceeded: Pod was active on the node',
    ],
    [
      'that was evicted, although its container has terminated, too',
      {
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory.',
        containerStatuses: [{ name: 'app', state: { terminated: { reason: 'Error', exitCode: 137 } } }],
      },
      'the Pod has ended: Failed: Evicted: The node was low on resource: memory.',
    ],
    [
      'that was killed without memory',
      {
        phase: 'Failed',
        containerStatuses: [{ name: 'app', state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }],
      },
      'the Pod has ended: Failed: container app: OOMKilled (exit code 137)',
    ],
    ['that has ended', { phase: 'Succeeded' }, 'the Pod has ended: Succeeded'],
    [
      'that fits nowhere',
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }] },
      `not scheduled: 0/3 nodes are available${seeEvents}`,
    ],
  ];
  for (const [what, status, expected] of stories) {
    it(`has the reason why a pod ${what} cannot be used`, () => assert.equal(waitingOf(status), expected));
  }

  const odd: unknown[] = [
    null,
    7,
    'x',
    [],
    { phase: 7 },
    { conditions: 'x' },
    { conditions: [null, 7] },
    { containerStatuses: {} },
  ];
  for (const status of odd) {
    it(`treats the invalid status ${JSON.stringify(status)} as empty`, () => {
      const view = viewPod(pod(status));
      assert.deepEqual([view?.phase, view?.ready, view?.notReadyReason], ['', false, 'the Pod is Pending']);
    });
  }

  it('truncates a long reason', () => assert.ok((waitingOf(waits('x'.repeat(9000))) ?? '').length < 650));

  for (const [what, length, shown] of [
    ['keeps a message of 200 characters', 200, `${'m'.repeat(200)}; see`],
    ['cuts a message of 201 characters', 201, `${'m'.repeat(199)}…; see`],
  ] as const) {
    it(what, () => assert.ok(waitingOf(waits('Error', 'm'.repeat(length)))?.includes(`: Error: ${shown}`)));
  }
});
