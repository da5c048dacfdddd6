import assert from 'node:assert/strict';
import { conditionOf, execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const summaries = ['Ready', 'Reconciling', 'Stalled'];

describe('tools without knowledge of these kinds', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const summaryOf = (object: StoredRequest): string[] =>
    summaries.flatMap((type) => {
      const condition = conditionOf(object, type);
      return condition ? [`${type}=${condition.status} ${condition.reason}`] : [];
    });

  const waitFor = (condition: string, what: string): Promise<string> =>
    stage.kubectl('wait', `--for=condition=${condition}`, what, '--timeout=30s');

  it('can wait for a template and a request to be Ready', async () => {
    await waitFor('Ready', 'podaccesstemplate/payments-shell');
    const request = await stage.createOk(stage.alice, podRequest('own', { duration: '10m' }));
    await waitFor('Ready', 'podaccessrequest/own');
    const ready = await stage.ready(request);
    assert.deepEqual(summaryOf(ready), ['Ready=True Open']);
    assert.ok(
      ready.status?.conditions?.every(({ status }) => status === 'True'),
      'as in Oz',
    );
  });

  it('see a request in progress', async () => {
    await stage.apply({
      apiVersion: 'crds.wizardofoz.co/v1alpha1',
      kind: 'PodAccessTemplate',
      metadata: { name: 'early' },
      spec: {
        accessConfig: { allowedGroups: ['devs'] },
        controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'nowhere' },
      },
    });
    await waitFor('Reconciling', 'podaccesstemplate/early');
    const template = await stage.templateReady('PodAccessTemplate', 'early', false);
    assert.deepEqual(summaryOf(template), ['Ready=False TargetNotFound', 'Reconciling=True TargetNotFound']);
    await stage.kubectl('create', 'deployment', 'nowhere', '--image=busybox:1.37', '--replicas=0');
    await waitFor('Ready', 'podaccesstemplate/early');
    const later = await stage.templateReady('PodAccessTemplate', 'early');
    assert.deepEqual(summaryOf(later), ['Ready=True Success']);
  });

  it('see a request that cannot become ready', async () => {
    const request = await stage.createOk(stage.alice, execRequest('denied', { targetPod: 'nobody', duration: '10m' }));
    await waitFor('Stalled', 'execaccessrequest/denied');
    const denied = await stage.requestUntil(
      'to be denied',
      request,
      (now) => conditionOf(now, 'Stalled') !== undefined,
    );
    assert.deepEqual(summaryOf(denied), ['Ready=False Denied', 'Stalled=True Denied']);
    assert.equal(denied.status?.ready, false);
  });
});
