import assert from 'node:assert/strict';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('the grant', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  for (const manifest of [podRequest('own'), execRequest('running')]) {
    it(`of a ${manifest.kind} gives access only to the requester, not to others of the group`, async () => {
      const request = await stage.createReady(stage.alice, manifest);
      const pod = request.status?.podName ?? '';
      await stage.alice.entering(stage.namespace, pod);
      assert.equal(await stage.carol.mayExec(stage.namespace, pod), false);
    });
  }
});
