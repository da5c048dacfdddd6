import assert from 'node:assert/strict';
import { requestLabel } from '../../src/api/access/names.ts';
import { execRequest, podRequest } from '../support/access-requests.ts';
import { AccessStage } from '../support/access-stage.ts';

describe('M2: somebody of no allowed group', () => {
  let stage: AccessStage;

  before(async function () {
    // The first run on a machine builds Kubernetes.
    this.timeout(1_200_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  for (const manifest of [podRequest('by-bob'), execRequest('by-bob')]) {
    it(`gets no ${manifest.kind}, and is told which group it takes`, async () => {
      const { code, stderr } = await stage.bob.kubectl(['create', '-n', stage.namespace, '-f', '-'], {
        input: JSON.stringify(manifest),
        reject: false,
      });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /NotEligible: spec\.templateName: user bob is in \[qa, system:authenticated\]; template payments-(shell|exec) allows \[devs, sre\]/,
      );
      assert.equal(await stage.read(manifest.kind, 'by-bob'), undefined);
    });
  }

  it('leaves nothing behind', async () => {
    const left = await stage.kubectl('get', 'pods,roles,rolebindings', '-l', requestLabel, '-o', 'name');
    assert.equal(left, '');
  });
});
