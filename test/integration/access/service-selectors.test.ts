import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { requestLabel } from '../../../src/api/access/names.ts';
import { conditionOf, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { accessTo, isolatedWorkload } from '../../support/isolated-workload.ts';

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

const template = (name: string, podLabels: object, more: object = {}): Manifest =>
  accessTo(name, 'payments', { controllerTargetMutationConfig: { podLabels }, ...more });

describe('an access pod', () => {
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
    await stage.templateObserved('PodAccessTemplate', templateName);
    return stage.createOk(stage.alice, podRequest(`via-${templateName}`, { templateName, duration: '10m' }));
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

  it('has none of the labels of its workload, so that no Service, budget, or policy selects it', async () => {
    const request = await stage.createReady(stage.alice, podRequest('plain', { duration: '10m' }));
    const pod = request.status?.podName ?? '';
    const found = await stage.kubectl('get', 'pods', '-l', 'app=payments', '-o', 'name');
    assert.ok(!found.includes(pod), found);
    assert.ok(!(await addressesOf('payments')).includes(pod));
  });

  const refused: [string, Manifest, RegExp][] = [
    ['a Service would send traffic to it', template('served', labels), /^Service payments selects the access pod/],
    [
      'it gets selected labels by a patch',
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
      'the template lists only one of two selectors',
      template('half-listed', labels, { allowedSelectors: [{ kind: 'Service', name: 'payments' }] }),
      /^PodDisruptionBudget backends selects/,
    ],
  ];
  for (const [title, manifest, message] of refused) {
    it(`is denied if ${title}`, async () => assert.match(await refusal(manifest), message));
  }

  it('is created under selectors that the template lists', async () => {
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

  it('is created with labels that nothing selects', async () =>
    assert.ok((await stage.ready(await through(template('quiet', { app: 'payments-console' })))).status?.ready));

  describe('of a workload whose egress is isolated', () => {
    interface Pod {
      metadata: { labels: Record<string, string> };
      spec: { serviceAccountName: string; imagePullSecrets?: { name: string }[] };
    }
    const podThrough = async (templateName: string): Promise<Pod & { name: string }> => {
      await stage.templateReady('PodAccessTemplate', templateName);
      const manifest = podRequest(`into-${templateName}`, { templateName, duration: '10m' });
      const request =
        (await stage.read(manifest.kind, `into-${templateName}`)) ?? (await stage.createOk(stage.alice, manifest));
      const name = (await stage.ready(request)).status?.podName ?? '';
      return { name, ...(JSON.parse(await stage.kubectl('get', 'pod', name, '-o', 'json')) as Pod) };
    };
    const withoutOurs = ({ metadata: { labels } }: Pod): object => {
      const { [requestLabel]: _, ...others } = labels;
      return others;
    };

    before(() => stage.apply(...isolatedWorkload('vault'), ...isolatedWorkload('ledger', { byApp: true })));

    it('keeps the label by which the policy isolates it, and none that the Service selects', async () => {
      const pod = await podThrough('vault');
      assert.deepEqual(withoutOurs(pod), { zone: 'vault-closed' });
      assert.ok(!(await addressesOf('vault')).includes(pod.name));
    });

    it('runs under the ServiceAccount default, with the image pull secrets of the workload’s ServiceAccount', async () => {
      const { spec } = await podThrough('vault');
      assert.deepEqual([spec.serviceAccountName, spec.imagePullSecrets], ['default', [{ name: 'vault-registry' }]]);
    });

    it('runs under the ServiceAccount of the workload if the template keeps it', async () => {
      await stage.apply(
        accessTo('vault-robot', 'vault', { controllerTargetMutationConfig: { keepServiceAccount: true } }),
      );
      assert.equal((await podThrough('vault-robot')).spec.serviceAccountName, 'vault-robot');
    });

    it('is not created if it would escape the policy, and the message has both remedies', async () => {
      await stage.templateReady('PodAccessTemplate', 'ledger', false);
      const asked = await stage.createOk(
        stage.alice,
        podRequest('via-ledger', { templateName: 'ledger', duration: '10m' }),
      );
      const outcome = (one: typeof asked) => conditionOf(one, 'AccessResourcesCreated');
      const denied = await stage.requestUntil('to be denied', asked, (now) => outcome(now) !== undefined);
      assert.equal(outcome(denied)?.reason, 'ConfinementLost');
      const message = outcome(denied)?.message ?? '';
      assert.match(
        message,
        /^NetworkPolicy ledger-egress isolates the egress of the pods of Deployment ledger .*\(app=ledger\)/,
      );
      assert.match(
        message,
        /with them, Service ledger, Deployment ledger would select it; add these labels to podLabels/,
      );
      assert.match(
        message,
        /add \{kind: Service, name: ledger\} to spec\.allowedSelectors, or set the chart value accessPods to oz/,
      );
      assert.deepEqual(await stage.children(denied.metadata.uid), []);
    });

    it('is created within the policy if the template adds the label and lists the Service', async () => {
      const allowedSelectors = [{ kind: 'Service', name: 'ledger' }];
      const controllerTargetMutationConfig = { podLabels: { app: 'ledger' } };
      await stage.apply(accessTo('ledger-listed', 'ledger', { allowedSelectors, controllerTargetMutationConfig }));
      assert.deepEqual(withoutOurs(await podThrough('ledger-listed')), { app: 'ledger' });
    });
  });
});
