import assert from 'node:assert/strict';
import { podAccessRequests } from '../../../src/api/access/pod-access.ts';
import { pods, roleBindings } from '../../../src/api/resources.ts';
import { LifecycleStage, requestName } from './lifecycle/lifecycle-stage.ts';

describe('metrics of access', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    await stage.start();
    await stage.granted();
  });
  afterEach(() => stage.stop());

  const lines = async (): Promise<string[]> => (await stage.metrics.expose()).split('\n');
  const value = async (series: string): Promise<number | undefined> => {
    const line = (await lines()).find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };

  const steady: [string, number][] = [
    [
      'oz_access_requests{kind="PodAccessRequest",namespace="payments",template="payments-shell",user="redacted",ready="true"}',
      1,
    ],
    ['oz_access_templates{kind="PodAccessTemplate",namespace="payments",name="payments-shell",ready="true"}', 1],
    [
      'oz_access_request_ready_seconds_count{kind="PodAccessRequest",namespace="payments",template="payments-shell"}',
      1,
    ],
    [
      'oz_access_request_requested_duration_seconds_sum{kind="PodAccessRequest",namespace="payments",template="payments-shell"}',
      600,
    ],
    ['drawbridge_grants_past_expiry{kind="PodAccessRequest"}', 0],
    ['drawbridge_grants_active{kind="PodAccessRequest"}', 1],
    ['drawbridge_drift_objects{kind="RoleBinding",drift="orphaned"}', 0],
    ['drawbridge_drift_objects{kind="RoleBinding",drift="missing"}', 0],
  ];
  for (const [series, expected] of steady) {
    it(`show ${series}`, async () => assert.equal(await value(series), expected));
  }

  it('name no user', async () => assert.doesNotMatch((await lines()).join('\n'), /alice/));

  it('count an end, with its delay', async () => {
    await stage.clock.advance(600_000);
    assert.equal(await value('drawbridge_grants_active{kind="PodAccessRequest"}'), 0);
    assert.equal(await value('drawbridge_revocations_total{kind="PodAccessRequest",ending="Expired"}'), 1);
    assert.equal(await value('drawbridge_expiry_lag_seconds_bucket{le="0.01",kind="PodAccessRequest"}'), 1);
  });

  it('count a grant whose RoleBinding outlives its deadline, until it is gone', async () => {
    stage.cluster.fail('delete', 'rolebindings');
    await stage.clock.advance(600_000);
    assert.equal(await value('drawbridge_grants_past_expiry{kind="PodAccessRequest"}'), 1);
    stage.cluster.fault = () => {};
    await stage.clock.advance(10_000);
    assert.equal(await value('drawbridge_grants_past_expiry{kind="PodAccessRequest"}'), 0);
    const lag = 'drawbridge_expiry_lag_seconds';
    assert.equal(await value(`${lag}_count{kind="PodAccessRequest"}`), 1);
    assert.equal(
      await value(
        'oz_access_request_terminated_total{kind="PodAccessRequest",namespace="payments",template="payments-shell",reason="expired"}',
      ),
      1,
    );
    assert.equal(
      await value(
        'oz_access_requests{kind="PodAccessRequest",namespace="payments",template="payments-shell",user="redacted",ready="true"}',
      ),
      undefined,
      'the series of a deleted request is removed',
    );
  });

  it('count missing objects and orphans', async () => {
    for (const { metadata } of stage.cluster.all(roleBindings)) stage.cluster.drop(roleBindings, metadata);
    assert.equal(await value('drawbridge_drift_objects{kind="RoleBinding",drift="missing"}'), 1);
    stage.cluster.fail('delete', 'pods');
    stage.cluster.drop(podAccessRequests, requestName);
    for (const pod of stage.cluster.all(pods)) stage.cluster.put(pods, pod);
    await stage.clock.advance(10);
    assert.equal(await value('drawbridge_drift_objects{kind="Pod",drift="orphaned"}'), 1);
  });
});
