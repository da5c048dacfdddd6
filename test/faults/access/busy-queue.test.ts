import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate, targetOf } from '../../support/access-manifests.ts';
import { conditionOf, deadlineOf, type Manifest, podRequest, reviewed } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('a grant ends on time while the queue is full', function () {
  this.timeout(180_000);
  let stage: AccessStage;

  before(async () => {
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  const template = (name: string, spec: object): Manifest =>
    accessTemplate('PodAccessTemplate', name, { ...targetOf('payments'), ...spec });

  // More than the controller has workers.
  it('of forty requests whose pods are never Ready', async () => {
    await stage.apply(
      template('never', { controllerTargetMutationConfig: { podAnnotations: { 'sandbox/ready-after': '1h' } } }),
    );
    await stage.templateReady('PodAccessTemplate', 'never');
    const ask = async (index: number): Promise<void> => {
      const request = podRequest(`never-${index}`, { templateName: 'never', duration: '10m' });
      const { status, body } = await reviewed(() => stage.create(stage.alice, request));
      assert.equal(status, 201, JSON.stringify(body));
    };
    // In parts, because the API server waits 3 s for a webhook, and a busy machine may take longer for all calls at once.
    for (let first = 0; first < 40; first += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, index) => ask(first + index)));
    }
    // It must outlast the planning of the others.
    const request = await stage.createReady(stage.alice, podRequest('among-unready', { duration: '30s' }));
    const isOver = (): boolean => Date.now() >= deadlineOf(request) + 1000;
    await until('the deadline and one second', isOver, { timeoutMs: 60_000, everyMs: 10 });
    assert.equal(await stage.alice.canExec(stage.namespace, request.status?.podName ?? ''), 'no');
    await stage.gone(request);
  });

  it('of oversized JSON patches of another template, which are denied', async () => {
    const bomb = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'bomb' };
    const container = { name: 'app', image: 'busybox:1.37', args: Array.from({ length: 100_000 }, () => '') };
    const labels = { app: bomb.name };
    const podTemplate = { metadata: { labels }, spec: { containers: [container] } };
    const deployments = `/apis/apps/v1/namespaces/${stage.namespace}/deployments`;
    const { status } = await stage.plane.call('POST', deployments, {
      metadata: { name: bomb.name },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: podTemplate },
    });
    assert.equal(status, 201);
    const from = '/spec/containers/0/args';
    const copies = Array.from({ length: 128 }, () => ({ op: 'copy', from, path: '/metadata/copy' }));
    const controllerTargetMutationConfig = { patchSpecOperations: copies };
    await stage.apply(template(bomb.name, { controllerTargetRef: bomb, controllerTargetMutationConfig }));
    await stage.templateReady('PodAccessTemplate', bomb.name, false);

    const request = await stage.createReady(stage.alice, podRequest('among-bombs', { duration: '10s' }));
    const asked = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        stage.createOk(stage.alice, podRequest(`bomb-${index}`, { templateName: bomb.name, duration: '10m' })),
      ),
    );
    const created = 'AccessResourcesCreated';
    for (const one of asked) {
      const denied = await stage.requestUntil('to be denied', one, (now) => conditionOf(now, created) !== undefined);
      assert.equal(conditionOf(denied, created)?.reason, 'PlanTooLarge');
    }
    await stage.closed(request);
    const line = await stage.endOf(request.metadata.name);
    const lateMs = Date.parse(String(line['time'])) - deadlineOf(request);
    assert.ok(lateMs < 2000, `${lateMs} ms late`);
    await stage.plane.call('DELETE', `${deployments}/${bomb.name}`);
  });
});
