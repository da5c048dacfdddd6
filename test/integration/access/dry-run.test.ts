import assert from 'node:assert/strict';
import { execRequest, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage, isMarker, withoutMarker } from '../../support/access-stage.ts';

describe('a dry run', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  /** Without those of marker grants, and without Events of the workload and the templates, whose controllers send them late. */
  const objects = async (): Promise<string[]> => {
    const kinds = 'podaccessrequests,execaccessrequests,pods,roles,rolebindings,events';
    const names = (await stage.kubectl('get', kinds, '-o', 'name')).split('\n');
    return names
      .filter((name) => !isMarker(name.split('/')[1] ?? ''))
      .filter((name) => !/^event[^/]*\/payments-/.test(name) && !/^event[^/]*\/payments\./.test(name));
  };

  const kubectlCreate = (manifest: Manifest): Promise<unknown> =>
    stage.alice.kubectl(['create', '--dry-run=server', '-n', stage.namespace, '-f', '-'], {
      input: JSON.stringify(manifest),
    });

  it('of a create leaves only an audit line that is marked as a dry run', async () => {
    const before = await objects();
    const mark = stage.plane.auditLog.mark();
    await kubectlCreate(podRequest('dry-pod'));
    await kubectlCreate(execRequest('dry-exec'));
    await stage.runMarkerGrant();
    assert.deepEqual(await objects(), before);
    const calls = stage.plane.auditLog.calls({ user: stage.server.installation.serverUser, since: mark });
    assert.deepEqual(
      withoutMarker(calls).filter(
        // The judgement of a template may come meanwhile.
        ({ verb, namespace, name }) =>
          verb !== 'watch' && namespace === stage.namespace && name !== 'template-dry-run-access',
      ),
      [],
    );
    for (const name of ['dry-pod', 'dry-exec']) {
      const lines = await stage.audit(({ what }) => what.name === name);
      assert.deepEqual(
        lines.map(({ event, verdict, who, ...rest }) => [event, verdict, who.user, rest['dryRun']]),
        [['admission', 'allowed', 'alice', true]],
      );
    }
  });

  it('of a delete changes nothing', async () => {
    const request = await stage.createReady(stage.alice, podRequest('stays', { duration: '10m' }));
    await stage.alice.kubectl(['delete', 'podaccessrequest', 'stays', '-n', stage.namespace, '--dry-run=server']);
    await stage.runMarkerGrant();
    assert.equal((await stage.children(request.metadata.uid)).length, 3);
    assert.equal(await stage.alice.mayExec(stage.namespace, request.status?.podName ?? ''), true);
  });
});
