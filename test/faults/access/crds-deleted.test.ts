import assert from 'node:assert/strict';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const kinds = [
  ['PodAccessRequest', podRequest],
  ['ExecAccessRequest', execRequest],
] as const;

describe('when an administrator deletes the CRD of live grants', () => {
  let plane: Plane;
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    plane = await startPlane();
    stage = await AccessStage.open({ on: plane });
  });
  after(async () => {
    await stage?.server.kill();
    await plane?.stop();
  });

  it('AccessVote: access without approvals still opens and ends, even if the server restarts', async function () {
    this.timeout(120_000);
    const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/accessvotes.access.drawbridge.dev';
    await plane.call('DELETE', url);
    await until('the CRD to go', async () => (await plane.probe(url)).status === 404, { timeoutMs: 40_000 });
    await stage.closed(await stage.createReady(stage.alice, execRequest('without-votes', { duration: '6s' })));
    await stage.restart();
    await stage.closed(await stage.createReady(stage.alice, execRequest('restarted', { duration: '6s' })));
  });

  for (const [kind, ask] of kinds) {
    const crd = `${kind.toLowerCase()}s.crds.wizardofoz.co`;
    const url = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd}`;

    it(`${kind}: the access ends within two seconds, and then the CRD is deleted`, async function () {
      this.timeout(120_000);
      const asked = ['one', 'two'].map((name) => ask(name, { duration: '10m' }));
      const requests: StoredRequest[] = await Promise.all(asked.map((one) => stage.createReady(stage.alice, one)));
      const pods = requests.map(({ status }) => status?.podName ?? '');
      for (const pod of pods) {
        const isOpen = (): Promise<boolean> => stage.alice.mayExec(stage.namespace, pod);
        await until('the API server to know the RoleBinding', isOpen, { timeoutMs: 30_000 });
      }
      await plane.call('DELETE', url);
      const closed = async (): Promise<boolean> => {
        const children = await Promise.all(requests.map(({ metadata }) => stage.children(metadata.uid)));
        const bindings = children.flat().filter((child) => child.kind === 'RoleBinding');
        const open = await Promise.all(pods.map((pod) => stage.alice.mayExec(stage.namespace, pod)));
        return bindings.length === 0 && !open.includes(true);
      };
      await until('the access to end', closed, { timeoutMs: 2000, everyMs: 20 });
      // Requests stay until a copy of their attestation would be too old, about ten seconds.
      await until('the CRD to go', async () => (await plane.probe(url)).status === 404, { timeoutMs: 40_000 });
      const left = await Promise.all(requests.map(({ metadata }) => stage.children(metadata.uid)));
      assert.deepEqual(left.flat(), []);
      const names = requests.map(({ metadata }) => metadata.name);
      const revocations = await stage.audit(
        ({ event, what }) => event === 'revocation' && what.kind === kind && names.includes(what.name ?? ''),
      );
      assert.deepEqual(revocations.map(({ what, code }) => [what.name, code]).sort(), [
        ['one', 'Deleted'],
        ['two', 'Deleted'],
      ]);
      assert.ok(stage.server.running);
    });
  }
});
