import assert from 'node:assert/strict';
import { applyCrds } from '../../../sandbox/readiness.ts';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate, sleepingPod, workload } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { rolloutCrd } from '../../support/argo-rollouts.ts';

const workloads = {
  Deployment: workload('target-deployment'),
  StatefulSet: workload('target-statefulset', { serviceName: 'x' }, 'StatefulSet'),
  DaemonSet: workload('target-daemonset', {}, 'DaemonSet'),
  Rollout: {
    ...workload('target-rollout', { replicas: 1, strategy: { canary: {} } }, 'Rollout'),
    apiVersion: 'argoproj.io/v1alpha1',
  },
};

const template = (kind: 'PodAccessTemplate' | 'ExecAccessTemplate', { apiVersion, kind: of, metadata }: Manifest) =>
  accessTemplate(kind, `for-${metadata.name}`, {
    controllerTargetRef: { apiVersion, kind: of, name: metadata.name },
  });

describe('the target of a template', () => {
  let stage: AccessStage;
  let crd: string;

  before(async function () {
    // The first run on a machine downloads the module.
    this.timeout(300_000);
    crd = await rolloutCrd();
    stage = await AccessStage.open();
  });

  after(async () => {
    await stage?.plane.kubectl(['delete', '--ignore-not-found', '--wait=true', '-f', crd]);
    await stage?.close();
  });

  const asksThrough = (templateName: string) => ({ templateName, duration: '10m' });

  for (const kind of ['Deployment', 'StatefulSet', 'DaemonSet'] as const) {
    it(`may be a ${kind}, for a new pod and for a running pod`, async () => {
      const target = workloads[kind];
      const templates = [template('PodAccessTemplate', target), template('ExecAccessTemplate', target)];
      await stage.apply(target, ...templates);
      await stage.kubectl('rollout', 'status', `${kind}/${target.metadata.name}`, '--timeout=30s');
      const name = `for-${target.metadata.name}`;
      await Promise.all(templates.map((one) => stage.templateReady(one.kind, name)));
      const [pod, exec] = await Promise.all([
        stage.createReady(stage.alice, podRequest(name, asksThrough(name))),
        stage.createReady(stage.alice, execRequest(name, asksThrough(name))),
      ]);
      assert.match(pod.status?.podName ?? '', /-access$/);
      assert.match(exec.status?.podName ?? '', new RegExp(`^${target.metadata.name}-`));
    });
  }

  it('may be an Argo Rollout, even if its CRD is installed after the template', async function () {
    this.timeout(120_000);
    const target = workloads.Rollout;
    const name = `for-${target.metadata.name}`;
    await stage.apply(template('PodAccessTemplate', target));
    await stage.templateReady('PodAccessTemplate', name, false);

    await applyCrds(stage.plane, [crd]);
    await stage.apply(target);
    await stage.templateReady('PodAccessTemplate', name);
    const manifest = podRequest(name, asksThrough(name));
    await stage.answered(201, stage.alice, manifest);
    const request = await stage.createReady(stage.alice, manifest);
    await stage.alice.entering(stage.namespace, request.status?.podName ?? '');
  });

  it('that is a Rollout gives access to the running pods of its ReplicaSets', async () => {
    const target = workloads.Rollout;
    const name = target.metadata.name ?? '';
    const uid = await stage.kubectl('get', 'rollout', name, '-o', 'jsonpath={.metadata.uid}');
    const labels = { app: name, 'rollouts-pod-template-hash': '5d9c' };
    // Emulates Argo's controller.
    await stage.apply(
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: {
          name: `${name}-5d9c`,
          ownerReferences: [{ apiVersion: target.apiVersion, kind: 'Rollout', name, uid, controller: true }],
        } as Manifest['metadata'],
        spec: {
          replicas: 1,
          selector: { matchLabels: labels },
          template: sleepingPod(labels),
        },
      },
      template('ExecAccessTemplate', target),
    );
    await stage.kubectl('wait', `replicaset/${name}-5d9c`, '--for=jsonpath={.status.readyReplicas}=1', '--timeout=30s');
    await stage.templateReady('ExecAccessTemplate', `for-${name}`);
    // Right after a CRD is installed, the API server may briefly answer that there is no such kind, and the workload counts as missing.
    let asked = 0;
    const enter = async (): Promise<string | false> => {
      asked += 1;
      const { status, body } = await stage.create(
        stage.alice,
        execRequest(`rollout-${asked}`, asksThrough(`for-${name}`)),
      );
      if (status !== 201) return false;
      const outcome = (one: StoredRequest) => conditionOf(one, 'AccessResourcesCreated');
      const decided = await stage.requestUntil('to be decided', body as StoredRequest, (one) => Boolean(outcome(one)));
      return outcome(decided)?.status === 'True' && (decided.status?.podName ?? '');
    };
    const pod = await until('a request to be granted', enter, { timeoutMs: 60_000, everyMs: 500 });
    assert.match(pod, new RegExp(`^${name}-5d9c-`));
  });
});
