import assert from 'node:assert/strict';
import { shoots } from '../../../../examples/inventory/components/cluster.ts';
import { serviceInstances } from '../../../../examples/inventory/components/connectivity-proxy.ts';
import { virtualNetworks } from '../../../../examples/inventory/components/network.ts';
import { forceAnnotation } from '../../../../src/api/inventory/names.ts';
import { deployments } from '../../../../src/api/resources.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { Fleet } from '../../../support/inventory/fleet.ts';
import { simulatedKubeconfig } from '../../../support/inventory/kubeconfigs.ts';

const spec = {
  mode: 'managed' as const,
  cluster: { region: 'westeurope' },
  components: {
    network: { enabled: true, config: { cidr: '10.4.0.0/16' } },
    kubeconfig: { enabled: true, config: { lifetimeSeconds: 7200 } },
  },
};
const byoc = {
  mode: 'byoc' as const,
  kubeconfigSecretRef: { name: 'supplied', key: 'config' },
  components: { byoc: { enabled: true, config: { lifetimeSeconds: 7200 } } },
};
const minute = 60_000;
const hour = 60 * minute;
const version = '/kubeconfig/version';

describe('the reference components with the manager', function () {
  this.timeout(30_000);
  let fleet: Fleet;
  const begin = async (seed = 1): Promise<Fleet> => {
    fleet = new Fleet(seed);
    await fleet.start();
    return fleet;
  };
  afterEach(async () => {
    fleet.cloud.stop();
    await fleet.manager.stop();
  });
  const runsOf = (component: string): string[] => fleet.runs.filter((run) => run.startsWith(`${component} `));

  for (const seed of [1, 2, 3, 4, 5]) {
    it(`reach the same state in any order of registration and runs (seed ${seed})`, async () => {
      await begin(seed);
      const entry = fleet.create({ name: 'orders', spec });
      await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
      assert.deepEqual(Object.keys(fleet.outputs(entry)).sort(), [
        'cluster',
        'connectivity-proxy',
        'kubeconfig',
        'network',
      ]);
      // A chain of four, and a few polls of the cloud.
      assert.ok(fleet.runs.length <= 2 * 4 + 10, fleet.runs.join(', '));
      assert.ok(!fleet.runs.some((run) => /Failed|Retry|broken/.test(run)), fleet.runs.join(', '));
    });
  }

  it('run before the cluster exists, and report what is missing', async () => {
    await begin();
    const entry = fleet.create({ name: 'orders', spec: { ...spec, components: {} } });
    await fleet.until('the states', minute, () => fleet.states(entry)['connectivity-proxy'] === 'NotReady');
    const rows = fleet.inventory.entry(entry.ref)?.components ?? [];
    const missing = rows.find(({ name }) => name === 'network')?.missing?.map(({ path }) => path);
    assert.deepEqual(missing, ['/spec/components/network/config/cidr']);
    assert.equal(fleet.states(entry)['byoc'] ?? 'NotApplicable', 'NotApplicable');
  });

  it('correct external changes by their interval, without a change of the entry', async () => {
    await begin();
    const entry = fleet.create({ name: 'orders', spec });
    await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
    const [network] = fleet.management.list(virtualNetworks);
    assert.ok(network);
    const changed = { spec: { addressSpace: { addressPrefixes: ['192.168.0.0/16'] } } };
    await fleet.management.client.mergePatch(virtualNetworks, network.metadata, changed);
    const prefixes = (): unknown =>
      valueAt(fleet.management.find(virtualNetworks, network.metadata)?.spec, '/addressSpace/addressPrefixes');
    await fleet.until('the repair', 1.2 * hour, () => JSON.stringify(prefixes()) === '["10.4.0.0/16"]');
  });

  for (const [how, rotate] of [
    ['by time', () => Promise.resolve()],
    [
      'by force',
      () => {
        const change = (object: { metadata: { annotations?: Record<string, string> } }): void => {
          object.metadata.annotations = { [forceAnnotation('kubeconfig')]: 'now' };
        };
        fleet.inventory.edit({ name: 'orders' }, change);
        return Promise.resolve();
      },
    ],
  ] as const) {
    it(`replace the kubeconfig ${how}, and trigger its readers immediately`, async () => {
      await begin();
      const entry = fleet.create({ name: 'orders', spec });
      await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
      const before = valueAt(fleet.outputs(entry), version);
      await rotate();
      await fleet.until('another kubeconfig', 2 * hour, () => valueAt(fleet.outputs(entry), version) !== before);
      await fleet.clock.advance(2_000);
      const calls = fleet.manager.callsOf('connectivity-proxy');
      const woken = calls.filter(({ run }) =>
        run.reasons.some((reason) => reason.includes('/status/outputs/kubeconfig')),
      );
      assert.ok(woken.length >= 2, 'the reader ran for the first and for the second');
      assert.ok(!fleet.runs.some((run) => /Failed|Retry/.test(run)), fleet.runs.join(', '));
    });
  }

  it('serve an existing cluster like a created one', async () => {
    await begin();
    fleet.secret('supplied', simulatedKubeconfig('administrator'));
    const entry = fleet.create({ name: 'legacy', spec: byoc });
    await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
    assert.deepEqual(Object.keys(fleet.outputs(entry)).sort(), ['connectivity-proxy', 'kubeconfig']);
    for (const component of ['network', 'cluster', 'kubeconfig']) assert.deepEqual(runsOf(component), []);
    const before = valueAt(fleet.outputs(entry), version);
    await fleet.until('another kubeconfig', 2 * hour, () => valueAt(fleet.outputs(entry), version) !== before);
  });

  it('report why a supplied kubeconfig is not used', async () => {
    await begin();
    fleet.secret('supplied', simulatedKubeconfig('administrator', { exec: { command: 'sh' } }));
    const entry = fleet.create({ name: 'legacy', spec: byoc });
    await fleet.until('the failure', minute, () => fleet.states(entry)['byoc'] === 'Failed');
    const row = fleet.inventory.entry(entry.ref)?.components.find(({ name }) => name === 'byoc');
    assert.match(row?.message ?? '', /exec of the user is not allowed/);
    assert.equal(fleet.states(entry)['connectivity-proxy'], 'NotReady');
  });

  for (const seed of [1, 2, 3]) {
    it(`tear down in any order, and the entry is deleted after the last component (seed ${seed})`, async () => {
      await begin(seed);
      const entry = fleet.create({ name: 'orders', spec });
      fleet.managed.put(serviceInstances, {
        apiVersion: 'services.cloud.sap.com/v1',
        kind: 'ServiceInstance',
        metadata: { namespace: 'shop', name: 'orders' },
        spec: { serviceOfferingName: 'connectivity' },
      });
      await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
      assert.equal(fleet.managed.list(deployments).length, 1);
      fleet.inventory.delete(entry.ref);
      await fleet.until('the end', 10 * minute, () => fleet.inventory.entry(entry.ref) === undefined);
      assert.deepEqual([fleet.management.list(shoots), fleet.management.list(virtualNetworks)], [[], []]);
      assert.equal(fleet.managed.list(deployments).length, 0);
      assert.deepEqual(
        fleet.runs.filter((run) => run.endsWith(' Deleted')),
        ['connectivity-proxy Deleted', 'kubeconfig Deleted', 'cluster Deleted', 'network Deleted'],
      );
    });
  }

  it('do not delete a cluster that already existed', async () => {
    await begin();
    fleet.secret('supplied', simulatedKubeconfig('administrator'));
    const entry = fleet.create({ name: 'legacy', spec: byoc });
    await fleet.until('readiness', 10 * minute, () => fleet.isReady(entry));
    fleet.inventory.delete(entry.ref);
    await fleet.until('the end', 10 * minute, () => fleet.inventory.entry(entry.ref) === undefined);
    const deleted = fleet.managed.writes.filter((write) => write.startsWith('delete'));
    assert.deepEqual(deleted, [
      `delete clusterrolebindings drawbridge-${entry.ref.uid}`,
      `delete serviceaccounts kube-system/drawbridge-${entry.ref.uid}`,
    ]);
  });
});
