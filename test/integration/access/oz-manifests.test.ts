import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { requestLabel, revokeFinalizer } from '../../../src/api/access/names.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { accessTo, isolatedWorkload } from '../../support/isolated-workload.ts';

interface Container {
  name: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string }[];
  resources?: object;
  livenessProbe?: object;
}

interface Pod {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> };
  spec: { containers: Container[]; terminationGracePeriodSeconds: number; nodeSelector?: object; priority?: number };
}

describe('manifests of Oz users', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.applyFiles('examples/oz/1-workload.yaml');
    await stage.applyFiles(
      ...['pod-access-template-target', 'pod-access-template-overrides', 'pod-access-template-patch'].map(oz2),
      ...['pod-access-template-podspec', 'exec-access-template'].map(oz2),
    );
    await stage.kubectl('rollout', 'status', 'deployment/storefront', '--timeout=30s');
    await stage.kubectl('rollout', 'status', 'statefulset/ledger', '--timeout=30s');
    await stage.kubectl('wait', 'podaccesstemplates,execaccesstemplates', '--all', '--for=condition=TargetRefExists');
    await stage.kubectl(
      'wait',
      'podaccesstemplates,execaccesstemplates',
      '--all',
      '--for=condition=TemplateDurationsValid',
    );
    await stage.kubectl('wait', 'podaccesstemplates,execaccesstemplates', '--all', '--for=condition=Ready');
  });
  after(() => stage?.close());

  const oz2 = (name: string): string => `examples/oz/2-${name}.yaml`;

  const podOf = async (request: StoredRequest): Promise<Pod> =>
    JSON.parse(await stage.kubectl('get', 'pod', request.status?.podName ?? '', '-o', 'json')) as Pod;

  /** Requests a pod through the template as alice. */
  const podThrough = async (templateName: string): Promise<Pod> =>
    podOf(await stage.createReady(stage.alice, podRequest(`via-${templateName}`, { templateName, duration: '10m' })));

  it('work unchanged: requests for a new pod, for any pod, and for a specific pod become Ready', async () => {
    const requests = ['pod-access-request', 'exec-access-request', 'exec-access-request-target-pod'];
    await stage.applyFiles(...requests.map((name) => `examples/oz/3-${name}.yaml`));
    for (const condition of ['AccessResourcesReady', 'AccessStillValid']) {
      const named = [
        'podaccessrequest/storefront-console',
        'execaccessrequest/storefront-any',
        'execaccessrequest/ledger-first',
      ];
      await stage.kubectl('wait', ...named, `--for=condition=${condition}`, '--timeout=20s');
    }
    const [any, certain] = await Promise.all(
      ['storefront-any', 'ledger-first'].map((name) => stage.read('ExecAccessRequest', name)),
    );
    assert.match(any?.status?.podName ?? '', /^storefront-[a-z0-9]+-[a-z0-9]+$/);
    assert.equal(certain?.status?.podName, 'ledger-0');
  });

  it('change nothing when they are applied again', async () => {
    const again = await stage.applyFiles('examples/oz/3-pod-access-request.yaml', oz2('pod-access-template-overrides'));
    assert.deepEqual(
      again
        .trim()
        .split('\n')
        .map((line) => line.split(' ').at(-1)),
      ['unchanged', 'unchanged'],
    );
    const { metadata } = (await stage.read('PodAccessRequest', 'storefront-console')) as StoredRequest;
    assert.deepEqual(metadata.finalizers, [revokeFinalizer]);
  });

  it('with a Deployment as the target create a pod from its template, without its labels and grace period', async () => {
    const { metadata, spec } = await podThrough('storefront-plain');
    assert.deepEqual(
      spec.containers.map(({ name }) => name),
      ['web', 'proxy'],
    );
    assert.equal(metadata.labels['app'], undefined);
    assert.equal(metadata.annotations?.['metrics.example.com/scrape'], 'true');
    assert.equal(spec.terminationGracePeriodSeconds, 1);
  });

  it('with overrides replace command, arguments, and resources, and add environment, labels, and annotations', async () => {
    const { metadata, spec } = await podThrough('storefront-console');
    const [web] = spec.containers;
    assert.deepEqual([web?.command, web?.args], [['sh', '-c'], ['sleep 7200']]);
    assert.deepEqual(web?.resources, {
      requests: { cpu: '100m', memory: '64Mi' },
      limits: { cpu: '1', memory: '128Mi' },
    });
    assert.deepEqual(
      web?.env?.map(({ name, value }) => [name, value]),
      [
        ['MODE', 'production'],
        ['MODE', 'console'],
        ['POD_NAME', undefined],
      ],
    );
    assert.equal(metadata.labels['role'], 'console');
    assert.equal(metadata.annotations?.['team.example.com/owner'], 'storefront');
    assert.equal(metadata.annotations?.['metrics.example.com/scrape'], undefined);
    assert.deepEqual(spec.nodeSelector, { 'kubernetes.io/os': 'linux' });
    assert.equal(spec.terminationGracePeriodSeconds, 45);
    assert.ok(web?.livenessProbe);
  });

  it('with patchSpecOperations change fields that have no override', async () => {
    const { spec } = await podThrough('storefront-patched');
    assert.deepEqual(
      spec.containers.map(({ name }) => name),
      ['console'],
    );
    assert.equal(spec.priority, 0);
  });

  it('with a podSpec create a pod without a workload, within the caps', async () => {
    const { spec } = await podThrough('toolbox');
    assert.deepEqual(
      spec.containers.map(({ name, command }) => [name, command]),
      [['toolbox', ['sleep', 'infinity']]],
    );
    assert.deepEqual(spec.containers[0]?.resources, {
      limits: { cpu: '500m', memory: '256Mi', 'ephemeral-storage': '1Gi' },
      requests: { cpu: '0', memory: '0', 'ephemeral-storage': '0' },
    });
  });

  it('show why a pod does not start, and that it is ready once it does', async () => {
    const podAnnotations = { 'sandbox/waiting-reason': 'ImagePullBackOff' };
    await stage.apply(accessTo('stuck', 'payments', { controllerTargetMutationConfig: { podAnnotations } }));
    await stage.templateReady('PodAccessTemplate', 'stuck');
    const asked = await stage.createOk(stage.alice, podRequest('stays', { templateName: 'stuck' }));
    const readiness = (request: StoredRequest) => conditionOf(request, 'AccessResourcesReady');
    // If the pod was not on its node yet, the first message says that.
    const waiting = await stage.requestUntil('to report why it waits', asked, (now) =>
      /^container app: ImagePullBackOff: .*; see the Events of the Pod/.test(readiness(now)?.message ?? ''),
    );
    assert.deepEqual([readiness(waiting)?.status, readiness(waiting)?.reason], ['False', 'NotYetReady']);
    assert.equal(conditionOf(waiting, 'AccessResourcesCreated')?.status, 'True');
    assert.equal(waiting.status?.ready, false);
    await stage.kubectl('annotate', 'pod', waiting.status?.podName ?? '', 'sandbox/waiting-reason-');
    await stage.ready(asked);
  });
});

describe('manifests of Oz users, with access pods in the mode oz', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({ flags: ['--access-pods=oz'] });
    const files = (await readdir(new URL('../../../examples/oz', import.meta.url))).sort();
    const [workloads, templates] = ['1-', '2-'].map((step) => files.filter((file) => file.startsWith(step)));
    await stage.applyFiles(...(workloads ?? []).map((file) => `examples/oz/${file}`));
    await stage.applyFiles(...(templates ?? []).map((file) => `examples/oz/${file}`));
    await stage.apply(...isolatedWorkload('ledger-api', { byApp: true }));
    await stage.kubectl('rollout', 'status', 'deployment/storefront', '--timeout=30s');
    await stage.kubectl('rollout', 'status', 'statefulset/ledger', '--timeout=30s');
  });
  after(() => stage?.close());

  const requests: [string, Manifest][] = [
    ['pod of a target alone', podRequest('plain', { templateName: 'storefront-plain' })],
    ['pod with overrides', podRequest('console', { templateName: 'storefront-console' })],
    ['pod with a patch', podRequest('patched', { templateName: 'storefront-patched' })],
    ['pod of a podSpec', podRequest('toolbox', { templateName: 'toolbox' })],
    ['running pod', execRequest('running', { templateName: 'storefront-exec' })],
    ['certain pod', execRequest('certain', { templateName: 'ledger-exec', targetPod: 'ledger-0' })],
  ];
  for (const [title, manifest] of requests) {
    it(`grant access to a ${title}`, async () => {
      const { kind, spec } = manifest;
      await stage.templateReady(kind.replace('Request', 'Template'), (spec as { templateName: string }).templateName);
      const asker = title === 'certain pod' ? stage.plane : stage.alice;
      await stage.ready(await stage.createOk(asker, manifest));
    });
  }

  it('create a pod without any label of its workload, under its ServiceAccount, which the NetworkPolicy does not select', async () => {
    await stage.templateReady('PodAccessTemplate', 'ledger-api');
    const manifest = podRequest('escaping', { templateName: 'ledger-api', duration: '10m' });
    const request = await stage.createReady(stage.alice, manifest);
    const pod = JSON.parse(await stage.kubectl('get', 'pod', request.status?.podName ?? '', '-o', 'json')) as Pod & {
      spec: { serviceAccountName: string };
    };
    assert.deepEqual(Object.keys(pod.metadata.labels), [requestLabel]);
    assert.equal(pod.spec.serviceAccountName, 'ledger-api-robot');
  });
});
