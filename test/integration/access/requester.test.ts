import assert from 'node:assert/strict';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('the requester', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const claimed = { username: 'mallory', uid: '1', groups: ['system:masters'], time: '2020-01-01T00:00:00Z' };

  for (const manifest of [
    podRequest('claims', { requester: claimed }),
    execRequest('claims', { requester: claimed }),
  ]) {
    describe(`a ${manifest.kind}`, () => {
      it('names the caller, whatever the manifest claims', async () => {
        const { spec } = await stage.createOk(stage.alice, manifest);
        assert.equal(spec?.requester?.username, 'alice');
        assert.deepEqual(spec?.requester?.groups, ['devs', 'system:authenticated']);
      });

      it('names the user whom an administrator impersonates', async () => {
        const name = 'impersonated';
        await stage.plane.kubectl(
          ['create', '-n', stage.namespace, '-f', '-', '--as=carol', '--as-group=devs', '--as-uid=c-7'],
          { input: JSON.stringify({ ...manifest, metadata: { name } }) },
        );
        const requester = (await stage.read(manifest.kind, name))?.spec?.requester;
        assert.deepEqual([requester?.username, requester?.groups], ['carol', ['devs', 'system:authenticated']]);
      });

      it('keeps its requester if a client replaces it by a manifest without a requester', async () => {
        // The leader writes the status until the request is ready, which would be a conflict.
        await stage.ready({ kind: manifest.kind, metadata: { name: 'claims', uid: '' } });
        const { requester: _, ...spec } = manifest['spec'] as { requester: object };
        await stage.plane.kubectl(['replace', '-n', stage.namespace, '-f', '-'], {
          input: JSON.stringify({ ...manifest, spec }),
        });
        assert.equal((await stage.read(manifest.kind, 'claims'))?.spec?.requester?.username, 'alice');
      });
    });
  }
});
