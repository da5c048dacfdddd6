import assert from 'node:assert/strict';
import { connectSubresources } from '../../../src/audit/record.ts';
import { podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { enter } from '../../support/pod-entries.ts';

/** A pod in kube-system with a name like that of an access pod. */
const repairPod = 'repair-access';

describe('while the server is down', () => {
  let stage: AccessStage;
  let request: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    request = await stage.createReady(stage.alice, podRequest('own', { duration: '10m' }));
    for (const namespace of ['kube-system', 'drawbridge-system']) await runPod(namespace, repairPod);
    await runPod(stage.namespace, 'plain');
    await stage.server.kill();
  });
  after(async () => {
    if (!stage) return;
    for (const namespace of ['kube-system', 'drawbridge-system']) {
      await stage.plane.call('DELETE', `/api/v1/namespaces/${namespace}/pods/${repairPod}?gracePeriodSeconds=0`);
    }
    if (!stage.server.running) await stage.start();
    await stage.close();
  });

  async function runPod(namespace: string, name: string): Promise<void> {
    // A namespace needs the default ServiceAccount before it can have pods.
    await stage.plane.kubectl(['run', name, '-n', namespace, '--image=busybox:1.37']);
    await stage.plane.kubectl(['wait', `pod/${name}`, '-n', namespace, '--for=condition=Ready', '--timeout=30s']);
  }

  const echo = (namespace: string, pod: string, kubeconfig = stage.plane.adminKubeconfig) =>
    stage.plane.kubectl(['exec', '-n', namespace, pod, '--', 'echo', 'in'], { kubeconfig, reject: false });

  const open: [string, () => string, () => Promise<string>][] = [
    [
      'pods of workloads',
      () => stage.namespace,
      () => stage.kubectl('get', 'pods', '-l', 'app=payments', '-o', 'jsonpath={.items[0].metadata.name}'),
    ],
    ['pods without an owner', () => stage.namespace, async () => 'plain'],
    ['pods of kube-system, whatever their name', () => 'kube-system', async () => repairPod],
    ['pods of the server’s namespace, whatever their name', () => 'drawbridge-system', async () => repairPod],
  ];
  for (const [title, namespace, pod] of open) {
    it(`${title} can be entered`, async () => {
      const { stdout, stderr } = await echo(namespace(), await pod());
      assert.equal(stdout, 'in\n', stderr);
    });
  }

  it('other calls that enter them work too', async () => {
    for (const way of connectSubresources) {
      const { body } = await enter[way](stage.plane, stage.namespace, 'plain');
      assert.doesNotMatch(JSON.stringify(body), /webhook/, way);
    }
  });

  for (const way of connectSubresources) {
    it(`access pods stay closed, by ${way}`, async () => {
      const { status, body } = await enter[way](stage.plane, stage.namespace, request.status?.podName ?? '');
      assert.equal(status, 500);
      assert.match((body as { message: string }).message, /failed calling webhook "enforce\.vpod\.kb\.io"/);
    });
  }

  it('access pods stay closed to their requester until the server is back', async () => {
    const pod = request.status?.podName ?? '';
    await stage.alice.entering(stage.namespace, pod);
    assert.match((await echo(stage.namespace, pod, stage.alice.kubeconfig)).stderr, /failed calling webhook/);
    await stage.start({ installation: stage.server.installation });
    assert.equal((await echo(stage.namespace, pod, stage.alice.kubeconfig)).stdout, 'in\n');
  });
});
