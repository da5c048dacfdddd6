import assert from 'node:assert/strict';
import { connectTargets } from '../../../src/access/admission-reads.ts';
import { baseRules, confinedTo } from '../../../src/access/policy/granted-rules.ts';
import { openAccessStores } from '../../../src/access/stores/access-stores.ts';
import { planHashAnnotation } from '../../../src/api/access/names.ts';
import { podAccessRequests } from '../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { condition } from '../../support/request-views.ts';
import { LifecycleStage, requestName } from './lifecycle/lifecycle-stage.ts';

const signal = new AbortController().signal;
const namespace = 'payments';

describe('the lookup of a pod that a user enters', () => {
  let stage: LifecycleStage;
  let pod: KubeObject;
  beforeEach(async () => {
    stage = new LifecycleStage();
    await stage.start();
    await stage.granted();
    [pod] = stage.cluster.all(pods) as [KubeObject];
  });
  afterEach(() => stage.stop());

  const lookUp = () => {
    const { cluster, clock } = stage;
    return connectTargets({ stores: openAccessStores(cluster), client: cluster.client, clock });
  };
  const entered = () => lookUp().connectTarget(namespace, pod.metadata.name, signal);
  const opened = () => ({
    uid: pod.metadata.uid,
    isAccessPod: true,
    grants: [
      {
        request: 'debug',
        template: 'payments-shell',
        subjects: [{ kind: 'User', name: 'alice' }],
        rules: confinedTo(pod.metadata.name, baseRules),
      },
    ],
  });

  it('finds an access pod with the subjects of its grant', async () => {
    stage.cluster.calls.length = 0;
    assert.deepEqual(await entered(), opened());
    assert.deepEqual(stage.cluster.calls, [], 'no call to the API server');
    assert.deepEqual(lookUp().cachedConnectTarget(namespace, pod.metadata.name), opened());
  });

  it('reads the API if the stores do not have the pod and the grant yet', async () => {
    await stage.stop();
    const { cluster, clock } = stage;
    const stored = request();
    cluster.drop(pods, { namespace, name: pod.metadata.name });
    change({ status: {} });
    const stores = openAccessStores(cluster);
    const client = { get: async (resource: typeof pods) => structuredClone(resource === pods ? pod : stored) };
    const found = await connectTargets({ stores, client, clock }).connectTarget(namespace, pod.metadata.name, signal);
    assert.deepEqual(found, opened());
    assert.equal(lookUp().cachedConnectTarget(namespace, pod.metadata.name), undefined);
  });

  it('finds an access pod after a user removes its label and annotations', async () => {
    const { labels: _, ownerReferences: __, annotations: ___, ...metadata } = pod.metadata;
    stage.cluster.put(pods, { ...pod, metadata });
    assert.deepEqual(await entered(), opened());
  });

  const closed: [string, () => void][] = [
    ['after the deadline', () => stage.clock.setWall(stage.clock.now() + 600_000)],
    ['of a request that was revoked', () => stage.change({ revoked: true })],
    [
      'of an emergency that ended early and is kept for its review',
      () => stage.forge({ conditions: [condition('AccessStillValid', 'False', { reason: 'VoteDenied' })] }),
    ],
    ['of a deleted request', () => stage.cluster.drop(podAccessRequests, requestName)],
  ];
  for (const [title, close] of closed) {
    it(`${title}: finds an access pod without subjects`, async () => {
      await stage.stop();
      close();
      assert.deepEqual(await entered(), { uid: pod.metadata.uid, isAccessPod: true, grants: [] });
    });
  }

  it('with such a name but another owner: finds a foreign pod', async () => {
    await stage.stop();
    const metadata = { name: 'shell-access', namespace, uid: 'foreign', annotations: { [planHashAnnotation]: 'x' } };
    stage.cluster.put(pods, { ...pod, metadata });
    const found = await lookUp().connectTarget(namespace, 'shell-access', signal);
    assert.deepEqual(found, { uid: 'foreign', isAccessPod: false, grants: [] });
  });

  it('created earlier under the name of an access pod: finds a foreign pod', async () => {
    await stage.stop();
    stage.forge({ children: [] });
    const metadata = { name: pod.metadata.name, namespace, uid: 'foreign' };
    stage.cluster.put(pods, { ...pod, metadata });
    assert.deepEqual(await entered(), { uid: 'foreign', isAccessPod: false, grants: [] });
  });

  it('of a missing pod: finds nothing', async () => {
    assert.equal(await lookUp().connectTarget(namespace, 'no-access', signal), undefined);
  });

  const request = (): KubeObject => stage.cluster.find(podAccessRequests, requestName) as KubeObject;
  const change = (fields: object): void => {
    stage.cluster.put(podAccessRequests, { ...request(), ...fields });
  };
});
