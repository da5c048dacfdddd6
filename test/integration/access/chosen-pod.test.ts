import assert from 'node:assert/strict';
import { requestLabel } from '../../../src/api/access/names.ts';
import { execRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('M11: the pod chosen for an ExecAccessRequest', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  it('stays the same through a hundred reconciles, whatever comes and goes beside it', async () => {
    const request = await stage.askUntilReady(stage.alice, execRequest('one-pod', { duration: '10m' }));
    await stage.kubectl('scale', 'deployment/payments', '--replicas=6');
    await stage.kubectl('rollout', 'status', 'deployment/payments', '--timeout=30s');
    const url = stage.urlOf('ExecAccessRequest', 'one-pod');
    for (let touched = 0; touched < 100; touched++) {
      const { status } = await stage.plane.call('PATCH', url, { metadata: { labels: { touched: `${touched}` } } });
      assert.equal(status, 200);
    }
    const later = await stage.read('ExecAccessRequest', 'one-pod');
    assert.deepEqual(later?.status?.grant, request.status?.grant);
    assert.equal(later?.status?.podName, request.status?.podName);
    const roles = await stage.kubectl(
      'get',
      'roles',
      '-l',
      requestLabel,
      '-o',
      'jsonpath={.items[*].rules[*].resourceNames}',
    );
    assert.match(roles, new RegExp(`^(\\["${request.status?.podName}"\\] ?)+$`));
  });
});
