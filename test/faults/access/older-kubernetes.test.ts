import assert from 'node:assert/strict';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

// The sandbox's own version is the newest of the three, and every other test runs on it.
for (const version of ['1.34', '1.35']) {
  describe(`Kubernetes ${version}, as the API server emulates it`, () => {
    let plane: Plane;
    let stage: AccessStage;

    before(async function () {
      this.timeout(180_000);
      plane = await startPlane({
        apiserverFlags: [`--emulated-version=${version}`],
        onProgress: (line) => console.error(line),
      });
      stage = await AccessStage.open({ on: plane });
      await stage.policiesAre('in force');
    });
    after(async () => {
      await stage?.close();
      await plane?.stop();
    });

    it('is the version of the plane', async () => {
      const { body } = await plane.call('GET', '/version');
      const { emulationMajor, emulationMinor } = body as { emulationMajor: string; emulationMinor: string };
      assert.equal(`${emulationMajor}.${emulationMinor}`, version);
    });

    for (const request of [podRequest('own', { duration: '12s' }), execRequest('running', { duration: '12s' })]) {
      it(`grants a ${request.kind} only to its requester, until its end`, async () => {
        const ready = await stage.createReady(stage.alice, request);
        const pod = ready.status?.podName ?? '';
        const mayAliceExec = (): Promise<boolean> => stage.alice.mayExec(stage.namespace, pod);
        await until('the API server to know the RoleBinding', mayAliceExec, { timeoutMs: 10_000 });
        assert.equal(await stage.carol.mayExec(stage.namespace, pod), false);
        const { stdout } = await stage.alice.kubectl(['exec', pod, '-n', stage.namespace, '--', 'echo', 'in']);
        assert.equal(stdout, 'in\n');
        await stage.closed(ready);
        const isOver = async (): Promise<boolean> => !(await mayAliceExec());
        await until('the API server to know its end', isOver, { timeoutMs: 30_000 });
      });
    }

    it('denies by webhook a caller in no allowed group', async () => {
      assert.equal((await stage.create(stage.bob, podRequest('outsider'))).status, 403);
    });

    it('protects a request by policies without the webhooks', async () => {
      await stage.removeWebhooksOnly();
      const forged = async (): Promise<boolean> =>
        (await stage.create(stage.alice, podRequest('forged'))).status === 403;
      await until('the policy to refuse it', forged, { timeoutMs: 30_000, everyMs: 100 });
    });
  });
}
