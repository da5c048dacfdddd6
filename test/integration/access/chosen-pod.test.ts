import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { requestLabel } from '../../../src/api/access/names.ts';
import { accessTemplate, sleepingPod, targetOf, workload } from '../../support/access-manifests.ts';
import { conditionOf, execRequest, type Manifest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('the pod chosen for an ExecAccessRequest', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  it('stays the same through a hundred reconciles while other pods are created and deleted', async () => {
    const request = await stage.createReady(stage.alice, execRequest('one-pod', { duration: '10m' }));
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

  describe('is a pod that the workload controls, whatever labels other pods have:', () => {
    const bare: Manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'dressed-up', labels: { app: 'payments' } },
      spec: sleepingPod({}).spec,
    };
    /** A workload whose pods have the labels of the target's pods, and one more that it selects by. */
    const foreignReplicaSet = (name: string, more: object): Manifest => ({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name },
      spec: {
        replicas: 1,
        selector: { matchLabels: { stranger: name } },
        template: sleepingPod({ stranger: name, ...more }),
      },
    });
    /** Resolves to the name of a running pod. */
    const running = (selector: string): Promise<string> =>
      until(
        `a running pod of ${selector}`,
        async () => {
          const names = ['-o', 'jsonpath={.items[*].metadata.name}'];
          const listed = await stage.kubectl(
            'get',
            'pods',
            '-l',
            selector,
            '--field-selector=status.phase=Running',
            ...names,
          );
          return listed.trim().split(' ')[0] || false;
        },
        { timeoutMs: 30_000, everyMs: 100 },
      );

    /** The reason and message with which an ExecAccessRequest is denied. */
    const denial = async (name: string, spec: object): Promise<string> => {
      const asked = await stage.createOk(stage.alice, execRequest(name, { duration: '10m', ...spec }));
      const outcome = (now: typeof asked) => conditionOf(now, 'AccessResourcesCreated');
      const decided = await stage.requestUntil('to be decided', asked, (now) => outcome(now) !== undefined);
      return `${outcome(decided)?.reason}: ${outcome(decided)?.message}`;
    };

    it('not a pod without a controller', async () => {
      await stage.apply(bare);
      await stage.kubectl('wait', 'pod/dressed-up', '--for=condition=Ready', '--timeout=30s');
      assert.match(await denial('of-bare', { targetPod: 'dressed-up' }), /^InvalidTargetPod: .* is not a pod of/);
    });

    it('not a pod of an independent ReplicaSet', async () => {
      await stage.apply(foreignReplicaSet('beside', { app: 'payments' }));
      const pod = await running('stranger=beside');
      assert.match(await denial('of-stranger', { targetPod: pod }), /^InvalidTargetPod: .* is not a pod of/);
    });

    it('not a relabelled pod of another workload', async () => {
      await stage.apply(workload('vault'));
      const pod = await running('app=vault');
      await stage.kubectl('label', '--overwrite', 'pod', pod, 'app=payments');
      const owners = (): Promise<string> =>
        stage.kubectl('get', 'pod', pod, '-o', 'jsonpath={.metadata.ownerReferences}');
      await until('its ReplicaSet to let it go', async () => (await owners()) === '', {
        timeoutMs: 30_000,
        everyMs: 100,
      });
      assert.match(await denial('of-relabelled', { targetPod: pod }), /^InvalidTargetPod: .* is not a pod of/);
    });

    it('and none if the workload has no running pod', async () => {
      await stage.apply(
        workload('idle', { replicas: 0 }),
        foreignReplicaSet('instead', { app: 'idle' }),
        accessTemplate('ExecAccessTemplate', 'idle', targetOf('idle')),
      );
      await running('stranger=instead');
      await stage.templateReady('ExecAccessTemplate', 'idle');
      assert.match(await denial('of-others', { templateName: 'idle' }), /^NoRunningPod/);
    });
  });
});
