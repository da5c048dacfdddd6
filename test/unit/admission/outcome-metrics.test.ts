import assert from 'node:assert/strict';
import { outcomeMetrics } from '../../../src/admission/metrics.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { accessRequest, connectReview, enteredPod, paths, requester, reviewOf, World, workloadPod } from './support.ts';

describe('metrics of the webhooks', () => {
  let world: World;
  const metrics = createMetrics();
  const recordOutcome = outcomeMetrics(metrics);
  beforeEach(() => {
    world = new World();
    world.ports.recordOutcome = recordOutcome;
  });

  it('count requests, pod connections, and denials, and no dry runs', async () => {
    const create = (fields: object = {}) =>
      world.review(
        paths.validatePod,
        reviewOf('podaccessrequests', 'CREATE', { object: accessRequest({ requester }), ...fields }),
      );
    assert.equal((await create()).allowed, true);
    assert.equal((await create({ dryRun: true })).allowed, true);
    assert.equal((await create({ object: accessRequest({ requester, duration: 'x' }) })).allowed, false);
    world.pod = workloadPod();
    await world.review(paths.watchPod, connectReview('exec'));
    world.pod = undefined;
    await world.review(paths.guardPod, connectReview('portforward'));
    world.pod = enteredPod();
    await world.review(paths.guardPod, connectReview('attach'));

    const text = await metrics.expose();
    for (const line of [
      'oz_access_request_created_total{kind="PodAccessRequest",namespace="payments",template="payments-shell",user="redacted"} 1',
      'oz_pod_exec_total{namespace="payments",subresource="exec",user="redacted",interactive="true"} 1',
      'drawbridge_admission_review_duration_seconds_count{webhook="vpodaccessrequest.kb.io",operation="CREATE",allowed="false",code="InvalidDuration"} 1',
      'drawbridge_admission_review_duration_seconds_count{webhook="enforce.vpod.kb.io",operation="CONNECT",allowed="false",code="NoGrant"} 1',
    ]) {
      assert.ok(text.split('\n').includes(line), `missing ${line} in\n${text}`);
    }
    assert.doesNotMatch(text, /alice|subresource="(attach|portforward)"/);
  });
});
