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
const waitingOf = (status?: unknown): string | undefined => viewPod(pod(status))?.notReadyReason;

describe('the view of a Pod', () => {
  it('keeps the fields for decisions and drops the manifest in the annotations', () => {
    const annotations = { team: 'payments', 'kubectl.kubernetes.io/last-applied-configuration': '{…}' };
    const status = { phase: 'Running', conditions: readyIs('True') };
    assert.deepEqual(viewPod(pod(status, { labels: { app: 'web' }, annotations, deletionTimestamp: 'now' })), {
      key: 'ns/web-0',
      uid: 'p-1',
      resourceVersion: '7',
      namespace: 'ns',
      name: 'web-0',
      labels: { app: 'web' },
      annotations: { team: 'payments' },
      phase: 'Running',
      ready: true,
      deleting: true,
      nothingToRevoke: true,
      names: { containers: [], ports: [] },
      notReadyReason: '',
    });
  });

  it('has the names of its containers and ports', () => {
    const containers = [{ name: 'app', ports: [{ name: 'http', containerPort: 80 }, { containerPort: 81 }] }];
    const spec = { containers, initContainers: [{ name: 'proxy' }] };
    assert.deepEqual(viewPod({ ...pod(), spec })?.names, { containers: ['app', 'proxy'], ports: ['http'] });
  });

  it('has its controller, and no other owners', () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'notes', uid: 'c-1' };
    const controller = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r-1', controller: true };
    const controllerOf = (...ownerReferences: object[]) => viewPod(pod(undefined, { ownerReferences }))?.controller;
    assert.deepEqual(controllerOf(owner, controller), { kind: 'ReplicaSet', name: 'web-1', uid: 'r-1' });
    assert.equal(controllerOf(owner, { ...controller, controller: false }), undefined);
  });

  const deletions: [string, object, boolean][] = [
    ['has something to revoke without a deletion', {}, false],
    [
      'has nothing to revoke once the server has deleted it',
      { deletionTimestamp: 'now', deletionGracePeriodSeconds: 1 },
      true,
    ],
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
      'the Pod is Running, but not Ready: containers with unready status: [shell]; see the Events of the Pod with: kubectl describe pod web-0 -n ns',
    ],
    [
      'that is not ready and does not say why',
      { phase: 'Running', conditions: readyIs('False') },
      'the Pod is Running, but not Ready: its condition Ready has no message; see the Events of the Pod with: kubectl describe pod web-0 -n ns',
    ],
    [
      'whose image cannot be pulled',
      { phase: 'Pending', containerStatuses: [{ name: 'app', state: { waiting: { reason: 'ImagePullBackOff' } } }] },
      'container app: ImagePullBackOff',
    ],
    [
      'whose init container failed, before its containers',
      {
        initContainerStatuses: [{ name: 'init', state: { terminated: { reason: 'Error' } } }],
        containerStatuses: [{ name: 'app', state: { waiting: { reason: 'PodInitializing' } } }],
      },
      'container init: Error',
    ],
    [
      'whose init container is through',
      {
        initContainerStatuses: [{ name: 'init', state: { terminated: { reason: 'Completed' } } }],
        containerStatuses: [{ name: 'app', state: { waiting: {} } }],
      },
      'container app: not running',
    ],
    [
      'that has failed',
      { phase: 'Failed', reason: 'DeadlineExceeded' },
      'the Pod has ended (DeadlineExceeded); delete this request and create another',
    ],
    ['that has ended', { phase: 'Succeeded' }, 'the Pod has ended (Succeeded); delete this request and create another'],
    [
      'that fits nowhere',
      { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }] },
      'not scheduled: 0/3 nodes are available',
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

  it('truncates a long reason', () => {
    const waiting = waitingOf({
      containerStatuses: [{ name: 'app', state: { waiting: { reason: 'x'.repeat(9000) } } }],
    });
    assert.ok((waiting ?? '').length < 600);
  });
});
