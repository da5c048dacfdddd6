import assert from 'node:assert/strict';
import { revokeFinalizer } from '../../../src/api/access/names.ts';
import { execRequest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('finalizers and owner references that would keep a deleted request', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'somebody', uid: 'b7b9f6a6-0000-4000-8000-000000000000' };

  for (const { metadata, ...manifest } of [podRequest('owned'), execRequest('owned')]) {
    it(`are dropped from a ${manifest.kind}`, async () => {
      const created = await stage.createOk(stage.alice, {
        ...manifest,
        metadata: { ...metadata, finalizers: ['example.com/forever'], ownerReferences: [owner] },
      });
      assert.deepEqual(created.metadata.finalizers, [revokeFinalizer]);
      assert.equal(created.metadata.ownerReferences, undefined);
    });
  }
});
