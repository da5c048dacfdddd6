import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { conditionOf, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const labels = { app: 'payments', tier: 'backend' };

const service = (name: string, selector: object): Manifest => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { selector, ports: [{ port: 80 }] },
});

const budget: Manifest = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'backends' },
  spec: { minAvailable: 1, selector: { matchLabels: { tier: 'backend' } } },
};

const denyAll: Manifest = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'deny-all' },
  spec: { podSelector: {}, policyTypes: ['Ingress'] },
};

const template = (name: string, podLabels: object, more: object = {}): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name },
  spec: {
    accessConfig: { allowedGroups: ['devs'] },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    controllerTargetMutationConfig: { podLabels },
    ...more,
  },
});

describe('M15: an access pod', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    await stage.apply(service('payments', { app: 'payments' }), budget, denyAll);
  });

  after(() => stage?.close());

  const through = async (manifest: Manifest) => {
    const templateName = manifest.metadata.name ?? '';
    await stage.apply(manifest);
    await stage.templateReady('PodAccessTemplate', templateName);
    return stage.askOk(stage.alice, podRequest(`via-${templateName}`, { templateName, duration: '10m' }));
  };

  const refusal = async (manifest: Manifest): Promise<string> => {
    const request = await stage.requestUntil('to be denied', await through(manifest), (now) =>
      (now.status?.conditions ?? []).some(({ status, reason }) => status === 'False' && reason === 'PodIsSelected'),
    );
    assert.deepEqual(await stage.children(request.metadata.uid), []);
    return conditionOf(request, 'AccessResourcesCreated')?.message ?? '';
  };

  const addressesOf = async (name: string): Promise<string[]> => {
    const slices = JSON.parse(
      await stage.kubectl('get', 'endpointslices', '-l', `kubernetes.io/service-name=${name}`, '-o', 'json'),
    ) as { items: { endpoints?: { targetRef?: { name: string } }[] }[] };
    return slices.items.flatMap(({ endpoints }) => (endpoints ?? []).map(({ targetRef }) => targetRef?.name ?? ''));
  };

  it('has none of the labels of its workload, so that no Service, budget or policy finds it', async () => {
    const request = await stage.askUntilReady(stage.alice, podRequest('plain', { duration: '10m' }));
    const pod = request.status?.podName ?? '';
    const found = await stage.kubectl('get', 'pods', '-l', 'app=payments', '-o', 'name');
    assert.ok(!found.includes(pod), found);
    assert.ok(!(await addressesOf('payments')).includes(pod));
  });

  const refused: [string, Manifest, RegExp][] = [
    ['that a Service would send traffic to', template('served', labels), /^Service payments selects the access pod/],
    [
      'that a PodDisruptionBudget would count',
      template('counted', { tier: 'backend' }),
      /^PodDisruptionBudget backends selects/,
    ],
    [
      'that gets its labels by a patch',
      template(
        'patched',
        {},
        {
          controllerTargetMutationConfig: {
            patchSpecOperations: [{ op: 'add', path: '/metadata/labels', value: labels }],
          },
        },
      ),
      /^Service payments selects/,
    ],
    [
      'of which only one of two is listed',
      template('half-listed', labels, { allowedSelectors: [{ kind: 'Service', name: 'payments' }] }),
      /^PodDisruptionBudget backends selects/,
    ],
  ];
  for (const [title, manifest, message] of refused) {
    it(`is not made ${title}`, async () => assert.match(await refusal(manifest), message));
  }

  it('is made under what the template lists', async () => {
    const allowedSelectors = [
      { kind: 'Service', name: 'payments' },
      { kind: 'PodDisruptionBudget', name: 'backends' },
    ];
    const request = await stage.ready(await through(template('listed', labels, { allowedSelectors })));
    const pod = request.status?.podName ?? '';
    await until('the Service to have it', async () => (await addressesOf('payments')).includes(pod), {
      timeoutMs: 30_000,
    });
  });

  it('is made with labels that nothing selects', async () =>
    assert.ok((await stage.ready(await through(template('quiet', { app: 'payments-console' })))).status?.ready));
});
