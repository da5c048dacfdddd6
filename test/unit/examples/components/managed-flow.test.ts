import assert from 'node:assert/strict';
import { shootName, shoots } from '../../../../examples/inventory/components/cluster.ts';
import { serviceInstances } from '../../../../examples/inventory/components/connectivity-proxy.ts';
import { virtualNetworks } from '../../../../examples/inventory/components/network.ts';
import { clusterInventories, forceAnnotation } from '../../../../src/api/inventory/names.ts';
import { deployments, namespaces, secrets } from '../../../../src/api/resources.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { ComponentStage, entryUid } from '../../../support/inventory/component-stage.ts';

const managed = {
  mode: 'managed',
  cluster: { region: 'westeurope' },
  components: { network: { config: { cidr: '10.4.0.0/16' } }, kubeconfig: { config: { lifetimeSeconds: 3600 } } },
};
/** Each component needs the outputs of those before. */
const order = ['network', 'cluster', 'kubeconfig', 'connectivity-proxy'];
const network = { namespace: 'fleet', name: `vnet-${entryUid}` };
const shoot = { namespace: 'fleet', name: shootName(entryUid) };
const proxy = { namespace: 'connectivity-proxy', name: 'connectivity-proxy' };
const kubeconfigSecret = { namespace: 'fleet', name: `kc-${entryUid}` };

describe('components of a managed cluster', () => {
  const stage = async (spec: Readonly<Record<string, unknown>> = managed): Promise<ComponentStage> => {
    const stage = new ComponentStage();
    await stage.start(spec);
    return stage;
  };
  const whole = async (): Promise<ComponentStage> => {
    const world = await stage();
    for (const component of order) await world.finish(component);
    return world;
  };
  const instance = (world: ComponentStage, name: string) =>
    world.managed.put(serviceInstances, {
      apiVersion: 'services.cloud.sap.com/v1',
      kind: 'ServiceInstance',
      metadata: { namespace: 'shop', name },
      spec: { serviceOfferingName: 'connectivity' },
    });

  it('report their missing inputs in the first run', async () => {
    const world = await stage({ ...managed, cluster: {}, components: {} });
    const missing = async (component: string): Promise<unknown> => {
      const outcome = await world.run(component);
      return outcome.outcome === 'NotReady' ? outcome.missing.map(({ path }) => path) : outcome;
    };
    assert.deepEqual(await missing('network'), ['/spec/cluster/region', '/spec/components/network/config/cidr']);
    assert.deepEqual(await missing('cluster'), ['/spec/cluster/region', '/status/outputs/network/vnetName']);
    const ofCluster = ['/status/outputs/cluster/shootName', '/status/outputs/cluster/endpoint'];
    assert.deepEqual(await missing('kubeconfig'), ofCluster);
    assert.deepEqual(await missing('connectivity-proxy'), ['/status/outputs/kubeconfig/version']);
    assert.deepEqual(await missing('byoc'), ['/spec/kubeconfigSecretRef/name']);
  });

  it('create a network, a cluster in it, and its kubeconfig', async () => {
    const world = await whole();
    assert.equal(valueAt(world.outputs, '/network/vnetName'), network.name);
    const spec = world.management.find(shoots, shoot)?.spec;
    assert.equal(valueAt(spec, '/provider/infrastructureConfig/networks/vnet/name'), network.name);
    assert.equal(valueAt(world.outputs, '/cluster/endpoint'), `https://api.${shoot.name}.example.org`);
    assert.deepEqual(valueAt(world.outputs, '/kubeconfig/secretRef'), { name: kubeconfigSecret.name, key: 'config' });
    assert.match(String(valueAt(world.outputs, '/kubeconfig/version')), /^[0-9a-f]{12}$/);
    assert.ok(world.management.find(secrets, kubeconfigSecret)?.['data']);
    assert.doesNotMatch(JSON.stringify(world.entry), /of-cloud/, 'no credential is in the entry');
  });

  it('answer Progressing while the cloud works', async () => {
    const world = await stage();
    const outcome = await world.run('network');
    assert.deepEqual([outcome.outcome, 'outputs' in outcome], ['Progressing', false]);
  });

  it('write nothing if everything is as wanted', async () => {
    const world = await whole();
    const runAll = async (): Promise<number> => {
      for (const component of order) await world.run(component);
      const writes = [...world.management.writes, ...world.managed.writes];
      return writes.filter((write) => !write.includes('clusterinventories')).length;
    };
    const known = await runAll();
    assert.ok(known > 0);
    assert.equal(await runAll(), known);
  });

  const otherSpace = { addressPrefixes: ['10.9.0.0/16'] };
  for (const [what, resource, name, path, changed] of [
    ['network', virtualNetworks, network, '/spec/addressSpace/addressPrefixes', { addressSpace: otherSpace }],
    ['cluster', shoots, shoot, '/spec/kubernetes/version', { kubernetes: { version: '1.20.0' } }],
  ] as const) {
    it(`correct changed fields of the ${what}, and keep other fields`, async () => {
      const world = await whole();
      const wanted = valueAt(world.management.find(resource, name), path);
      await world.management.client.mergePatch(resource, name, { spec: { ...changed, purpose: 'production' } });
      await world.finish(what);
      const found = world.management.find(resource, name);
      assert.deepEqual(valueAt(found, path), wanted);
      assert.equal(valueAt(found, '/spec/purpose'), 'production');
    });

    it(`recreate the ${what} after it was deleted`, async () => {
      const world = await whole();
      world.management.drop(resource, name);
      await world.finish(what);
      assert.ok(world.management.find(resource, name));
    });
  }

  it('distinguish transient from permanent faults', async () => {
    const world = await stage();
    world.cloud.faults.set('virtualnetworks', { lasting: false, message: 'the region is full' });
    await world.run('network');
    await world.clock.advance(5_000);
    const passing = await world.run('network');
    assert.deepEqual([passing.outcome, passing.message], ['Progressing', 'the region is full']);
    world.cloud.faults.set('virtualnetworks', { lasting: true, message: 'the range is taken' });
    await world.management.client.mergePatch(virtualNetworks, network, { metadata: { labels: { touched: 'yes' } } });
    await world.clock.advance(5_000);
    assert.deepEqual(await world.run('network'), { outcome: 'Failed', message: 'the range is taken' });
    await world.cloud.heal(virtualNetworks);
    await world.clock.advance(5_000);
    assert.equal((await world.run('network')).outcome, 'Done');
  });

  for (const cidr of ['10.4.0.0', '10.4.0.0/7', '10.4.0.256/16', 'fd00::/16']) {
    it(`reject the range ${cidr} permanently`, async () => {
      const world = await stage({ ...managed, components: { network: { config: { cidr } } } });
      assert.equal((await world.run('network')).outcome, 'Failed');
      assert.deepEqual(world.management.list(virtualNetworks), []);
    });
  }

  it('do not adopt objects of another entry', async () => {
    const world = await stage();
    world.management.put(virtualNetworks, { apiVersion: 'v1', kind: 'VirtualNetwork', metadata: network, spec: {} });
    const outcome = await world.run('network');
    assert.equal(outcome.outcome, 'Retry');
    const remedy =
      /does not belong to this entry; if nothing else uses it, delete it, or let the component adopt it, and so change and delete it: kubectl label .+=11111111-/;
    assert.match(outcome.message ?? '', remedy);
  });

  it('fail permanently on a lifetime that the server rejects', async () => {
    const long = { ...managed.components, kubeconfig: { config: { lifetimeSeconds: 86_401 } } };
    const world = await stage({ ...managed, components: long });
    for (const component of ['network', 'cluster']) await world.finish(component);
    const outcome = await world.run('kubeconfig');
    assert.deepEqual(outcome, {
      outcome: 'Failed',
      message:
        'the request for a kubeconfig is invalid: spec.expirationSeconds: must not be more than 24h; correct the cause, for example spec.components.kubeconfig.config.lifetimeSeconds',
    });
  });

  it('fail permanently on a Shoot name that is not a text', async () => {
    const world = await stage();
    const status = { outputs: { cluster: { shootName: 7, endpoint: 'https://api.example.org' } } };
    const entry = { namespace: world.entry.metadata.namespace ?? '', name: world.entry.metadata.name };
    await world.management.client.mergePatch(clusterInventories, entry, { status }, { subresource: 'status' });
    const outcome = await world.run('kubeconfig');
    assert.equal(outcome.outcome, 'Failed');
    assert.match(outcome.message ?? '', /shootName is not a text/);
  });

  it('keep a kubeconfig until rotation is due, and replace it well before it expires', async () => {
    const world = await whole();
    const version = valueAt(world.outputs, '/kubeconfig/version');
    await world.clock.advance(3_600_000 * 0.5);
    await world.run('kubeconfig');
    assert.equal(valueAt(world.outputs, '/kubeconfig/version'), version);
    await world.clock.advance(3_600_000 * 0.2);
    await world.run('kubeconfig');
    assert.notEqual(valueAt(world.outputs, '/kubeconfig/version'), version);
    assert.equal(world.cloud.kubeconfigs, 2);
  });

  it('replace a kubeconfig once per value of the force annotation', async () => {
    const world = await whole();
    const versions = new Set([valueAt(world.outputs, '/kubeconfig/version')]);
    for (const value of ['now', 'now', 'again']) {
      await world.annotate({ [forceAnnotation('kubeconfig')]: value });
      await world.run('kubeconfig');
      versions.add(valueAt(world.outputs, '/kubeconfig/version'));
    }
    assert.equal(versions.size, 3);
  });

  it('replace a kubeconfig that is not the published one, as after a crash between the writes', async () => {
    const world = await whole();
    world.secret(kubeconfigSecret.name, 'something else');
    await world.run('kubeconfig');
    assert.equal(world.cloud.kubeconfigs, 2);
  });

  it('install the proxy with the first service instance, and remove it with the last', async () => {
    const world = await whole();
    assert.equal(world.managed.find(deployments, proxy), undefined);
    instance(world, 'orders');
    await world.run('connectivity-proxy');
    assert.ok(world.managed.find(deployments, proxy));
    assert.equal(valueAt(world.outputs, '/connectivity-proxy/instances'), 1);
    world.managed.drop(serviceInstances, { namespace: 'shop', name: 'orders' });
    await world.run('connectivity-proxy');
    assert.equal(world.managed.find(deployments, proxy), undefined);
  });

  for (const [what, error] of [
    ['whose kubeconfig has expired', new ApiError(401, 'Unauthorized', 'the certificate has expired')],
    ['that does not answer', new TransportError('no route to it', undefined, true)],
  ] as const) {
    it(`answer Retry and never Failed for a cluster ${what}`, async () => {
      const world = await whole();
      world.managed.fault = () => {
        throw error;
      };
      assert.equal((await world.run('connectivity-proxy')).outcome, 'Retry');
    });
  }

  it('answer in time if a cluster is silent', async () => {
    const world = await whole();
    world.silent = true;
    const outcome = world.run('connectivity-proxy');
    await world.clock.settle();
    await world.clock.advance(3_500);
    assert.deepEqual(await outcome, {
      outcome: 'Retry',
      message: 'the managed cluster did not answer within 3500 ms; check that this component can reach it',
    });
  });

  it('delete the namespace of the proxy at teardown, but not one that existed before', async () => {
    for (const isOurs of [true, false]) {
      const world = await whole();
      const metadata = { name: proxy.namespace };
      if (!isOurs) world.managed.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
      instance(world, 'orders');
      await world.run('connectivity-proxy');
      assert.deepEqual(await world.run('connectivity-proxy', 'delete'), { outcome: 'Deleted' });
      assert.equal(world.managed.find(namespaces, metadata) === undefined, isOurs);
    }
  });

  it('say that an object of another owner is in the managed cluster', async () => {
    const world = await whole();
    instance(world, 'orders');
    world.managed.put(deployments, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: proxy, spec: {} });
    const { outcome, message } = await world.run('connectivity-proxy');
    assert.equal(outcome, 'Retry');
    assert.match(message ?? '', /in the managed cluster, deployments .+ does not belong to this entry;/);
  });

  it('restore a removed proxy', async () => {
    const world = await whole();
    instance(world, 'orders');
    await world.run('connectivity-proxy');
    world.managed.drop(deployments, proxy);
    await world.run('connectivity-proxy');
    assert.ok(world.managed.find(deployments, proxy));
  });

  it('tear down in the order of their outputs, independent of the order of calls', async () => {
    const world = await whole();
    instance(world, 'orders');
    await world.run('connectivity-proxy');
    const gone: string[] = [];
    const left = [...order];
    for (let round = 0; left.length > 0 && round < 40; round++) {
      for (const component of [...left]) {
        const { outcome } = await world.run(component, 'delete');
        if (outcome === 'Deleted') gone.push(left.splice(left.indexOf(component), 1).join());
      }
      await world.clock.advance(1_000);
    }
    assert.deepEqual(gone, order.toReversed());
    assert.deepEqual([world.management.list(shoots), world.management.list(virtualNetworks)], [[], []]);
    assert.equal(world.managed.find(deployments, proxy), undefined);
    assert.deepEqual(world.outputs, {});
  });
});
