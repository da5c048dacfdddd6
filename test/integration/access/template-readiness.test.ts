import assert from 'node:assert/strict';
import { accessTemplate, targetOf, workload } from '../../support/access-manifests.ts';
import { type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('a template', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const target = workload('late');
  const template = (name: string): Manifest => accessTemplate('PodAccessTemplate', name, targetOf('late'));

  it('becomes ready when its target appears, not ready when the target is deleted, and ready again', async () => {
    await stage.apply(template('late'));
    await stage.templateReady('PodAccessTemplate', 'late', false);
    await stage.apply(target);
    await stage.templateReady('PodAccessTemplate', 'late');
    await stage.kubectl('delete', 'deployment', 'late');
    await stage.templateReady('PodAccessTemplate', 'late', false);
    await stage.apply(target);
    await stage.templateReady('PodAccessTemplate', 'late');
    const inTime = podRequest('in-time', { templateName: 'late' });
    await stage.answered(201, stage.alice, inTime);
    await stage.createReady(stage.alice, inTime);
  });

  it('that is not reconciled yet accepts a request, which is granted after the reconcile', async () => {
    const { installation } = stage.server;
    await stage.stop();
    const leases = '/apis/coordination.k8s.io/v1/namespaces/drawbridge-system/leases';
    await stage.plane.call('DELETE', `${leases}/drawbridge-access`);
    await stage.plane.call('POST', leases, {
      metadata: { name: 'drawbridge-access' },
      spec: { holderIdentity: 'somebody else', leaseDurationSeconds: 600, renewTime: '2026-01-01T00:00:00.000000Z' },
    });
    await stage.start({ installation, flags: ['--leader-elect=true'] });
    await stage.apply(template('unseen'));
    const request = await stage.createOk(stage.alice, podRequest('waits', { templateName: 'unseen' }));
    assert.equal(((await stage.read('PodAccessTemplate', 'unseen')) as StoredRequest).status, undefined);
    await stage.plane.call('DELETE', `${leases}/drawbridge-access`);
    await stage.ready(request);
  });
});
