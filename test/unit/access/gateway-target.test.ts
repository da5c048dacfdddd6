import assert from 'node:assert/strict';
import { connectTargets } from '../../../src/access/admission-reads.ts';
import { baseRules, confinedTo } from '../../../src/access/policy/granted-rules.ts';
import { openAccessStores } from '../../../src/access/stores/access-stores.ts';
import { execAccessRequests } from '../../../src/api/access/exec-access.ts';
import type { Grant } from '../../../src/api/access/grant.ts';
import { podAccessRequests } from '../../../src/api/access/pod-access.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { pods } from '../../../src/api/resources.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { execRequestManifest, grantOf } from '../../support/access-objects.ts';
import { LifecycleStage, requestName } from './lifecycle/lifecycle-stage.ts';

const namespace = 'payments';

describe('the lookup of a pod that the gateway enters', () => {
  let stage: LifecycleStage;
  let pod: KubeObject;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.configure({ session: { via: 'Gateway' } });
    stage.gatewayIs('True');
    await stage.start();
    stage.ask();
    await stage.pass(10);
    [pod] = stage.cluster.all(pods) as [KubeObject];
  });
  afterEach(() => stage.stop());

  const targets = () => {
    const { cluster, clock } = stage;
    return connectTargets({ stores: openAccessStores(cluster), client: cluster.client, clock });
  };
  const aborter = new AbortController();
  /** The names of the requests whose grants open the pod to the gateway; undefined if there is no such pod. */
  const openedBy = async (
    { gatewayTarget } = targets(),
    name = pod.metadata.name,
    passMs = 1000,
  ): Promise<string[] | undefined> => {
    const found = gatewayTarget(namespace, name, aborter.signal);
    await stage.clock.advance(passMs);
    return (await found)?.grants.map(({ request }) => request);
  };
  const request = (): KubeObject => stage.cluster.find(podAccessRequests, requestName) as KubeObject;
  const direct = (): Grant => {
    const { session: _, ...grant } = stage.status.grant as Grant;
    return grant;
  };

  it('finds the grant at once, and makes no call', async () => {
    stage.cluster.calls.length = 0;
    assert.deepEqual(await openedBy(targets(), pod.metadata.name, 0), ['debug']);
    assert.deepEqual(stage.cluster.calls, []);
  });

  it('marks the grant for the webhook that admits direct connects', async () => {
    const target = await targets().connectTarget(namespace, pod.metadata.name, aborter.signal);
    assert.deepEqual(target?.grants, [
      {
        request: 'debug',
        template: 'payments-shell',
        subjects: [{ kind: 'User', name: 'alice' }],
        rules: confinedTo(pod.metadata.name, baseRules),
        viaGateway: true,
      },
    ]);
  });

  const closed: [string, () => void][] = [
    ['after the deadline', () => stage.clock.setWall(stage.clock.now() + 600_000)],
    ['of a request that was revoked', () => stage.change({ revoked: true })],
    ['of a deleted request', () => stage.cluster.drop(podAccessRequests, requestName)],
    ['of a direct grant', () => stage.forge({ grant: direct() })],
    [
      'of a pod that has replaced that of the grant',
      () => stage.cluster.put(pods, { ...pod, metadata: { name: pod.metadata.name, namespace, uid: 'later' } }),
    ],
  ];
  for (const [title, close] of closed) {
    it(`finds no grant ${title}`, async () => {
      await stage.stop();
      close();
      assert.deepEqual(await openedBy(), []);
    });
  }

  describe('of a workload', () => {
    const podOf = (uid: string) =>
      stage.cluster.put(pods, { ...pod, metadata: { name: 'web-0', namespace, uid } } as KubeObject);
    const grantAll = (uid: string): void => {
      const manifest = execRequestManifest();
      const grant = grantOf({
        template: { kind: 'ExecAccessTemplate', name: 'payments-exec', uid: 't-2', generation: 1 },
        pod: { name: 'web-0', uid },
        session: { via: 'Gateway' },
        expiresAt: formatTime(stage.clock.now() + 600_000),
      }) as unknown as Grant;
      stage.cluster.put(execAccessRequests, {
        ...manifest,
        metadata: { ...manifest.metadata, uid: 'r-9' },
        status: { grant },
      } as KubeObject);
    };
    beforeEach(() => stage.stop());

    it('finds the grant by the uid of the pod', async () => {
      podOf('p-1');
      grantAll('p-1');
      assert.deepEqual(await openedBy(targets(), 'web-0', 0), ['look']);
    });

    it('finds no grant for a later pod of the same name', async () => {
      podOf('p-2');
      grantAll('p-1');
      assert.deepEqual(await openedBy(targets(), 'web-0'), []);
    });
  });

  it('finds no pod that does not exist', async () => {
    assert.equal(await openedBy(targets(), 'no-access'), undefined);
  });

  it('waits up to a second for a grant that its store does not have yet', async () => {
    await stage.stop();
    const granted = request();
    stage.cluster.put(podAccessRequests, { ...granted, status: {} });
    const found = targets().gatewayTarget(namespace, pod.metadata.name, aborter.signal);
    await stage.clock.advance(400);
    stage.cluster.put(podAccessRequests, granted);
    await stage.clock.advance(50);
    assert.deepEqual((await found)?.grants.length, 1);
  });

  it('lets at most 16 connects wait, and answers others at once', async () => {
    const lookUp = targets();
    let answered = 0;
    const all = Array.from({ length: 20 }, () =>
      lookUp.gatewayTarget(namespace, 'no-access', aborter.signal).then(() => answered++),
    );
    await stage.clock.advance(10);
    assert.equal(answered, 4);
    await stage.clock.advance(1000);
    await Promise.all(all);
    assert.equal(answered, 20);
  });
});
