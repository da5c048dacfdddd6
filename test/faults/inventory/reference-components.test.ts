import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { shoots } from '../../../examples/inventory/components/cluster.ts';
import { serviceInstances } from '../../../examples/inventory/components/connectivity-proxy.ts';
import { virtualNetworks } from '../../../examples/inventory/components/network.ts';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import { InventoryServer } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import {
  clusterInventories,
  forceAnnotation,
  kubeconfigSecretName,
  reconcileRuns,
} from '../../../src/api/inventory/names.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../../src/api/object.ts';
import { deployments, namespaces, secrets } from '../../../src/api/resources.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { type JsonPointer, valueAt } from '../../../src/kit/json-pointer.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import { inlineCredentials } from '../../../src/kube/inline-kubeconfig.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { bindingPlane } from '../../support/binding/planes.ts';
import { inventoryExample } from '../../support/inventory/examples.ts';
import { adminKubeconfig, ReferenceFleet } from '../../support/inventory/reference-fleet.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';
import { percentile } from '../../support/percentile.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';
import { shown } from '../../support/shown-output.ts';

const clock = systemClock;
const waiting = { timeoutMs: 60_000, everyMs: 50 };
const proxy = { namespace: 'connectivity-proxy', name: 'connectivity-proxy' };
/** Permissions as an administrator of these entries would grant them. */
const rightsIn = (namespace: string): string => {
  const items = inventoryExample('reference-rights.yaml').map((object) => {
    const { metadata } = object;
    return metadata.namespace !== 'fleet' ? object : { ...object, metadata: { ...metadata, namespace } };
  });
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
};

describe('the reference components, with a second plane as the managed cluster', function () {
  this.timeout(180_000);
  let management: Plane;
  let managed: Plane;
  let server: InventoryServer;
  /** Proxy in front of the managed plane. */
  let proxied: FaultProxy;
  let fleet: ReferenceFleet;
  let here: OpenCluster;
  let there: OpenCluster;
  let namespace: string;
  const shop = `shop-${Date.now()}`;

  before(async () => {
    [management, managed] = await Promise.all([sharedPlane(), bindingPlane('provider')]);
    here = openCluster(await fileCredentials(await management.kubeconfigFor('reader', ['system:masters'])), { clock });
    there = openCluster(await fileCredentials(await managed.kubeconfigFor('reader', ['system:masters'])), { clock });
    namespace = await testNamespace('fleet');
    server = await InventoryServer.start(management, { namespaces: [namespace] });
    await management.kubectl(['apply', '-f', '-'], { input: rightsIn(namespace) });
    proxied = await managed.proxy();
    fleet = await ReferenceFleet.start({ management, managed, managedServer: proxied.server, server });
    await there.client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: shop } });
    // A short timeout, so that the test does not wait long for an unreachable cluster.
    await fleet.register({ 'connectivity-proxy': { timeoutSeconds: 3 } });
  });

  after(async () => {
    await proxied?.pass();
    await management?.kubectl(['delete', 'clusterinventories', '--all', '-n', namespace, '--timeout=60s'], {
      reject: false,
    });
    await fleet?.unregister();
    await fleet?.close();
    await server?.stop();
    await server?.uninstall();
    await management?.kubectl(['delete', '--ignore-not-found', '--wait=false', '-f', '-'], {
      input: rightsIn(namespace),
    });
    await fleet?.uninstall();
    await management?.kubectl(['delete', 'namespace', namespace, '--wait=false']);
    await managed?.kubectl(['delete', 'namespace', '--ignore-not-found', '--wait=false', shop, proxy.namespace]);
    await Promise.all([here?.close(), there?.close(), proxied?.close()]);
  });

  const create = async (file: string, name: string, annotations = {}): Promise<KubeObject> => {
    const [object] = inventoryExample(file);
    return here.client.create(clusterInventories, {
      ...(object as KubeObject),
      metadata: { name, namespace, annotations },
    });
  };
  const at = async (name: string, pointer: JsonPointer): Promise<unknown> =>
    valueAt(await here.client.get(clusterInventories, { namespace, name }), pointer);
  const run = async (entry: string, component: string): Promise<KubeObject> => {
    return here.client.get(reconcileRuns, { namespace, name: `${entry}.${component}` });
  };
  const seq = async (entry: string, component: string): Promise<unknown> =>
    valueAt(await run(entry, component), '/spec/seq');
  /** Rethrows an error with the entries, the runs and the server's log. */
  const withObjects = async (error: unknown): Promise<never> => {
    const kinds = 'clusterinventories,reconcileruns';
    const { stdout } = await management.kubectl(['get', kinds, '-n', namespace, '-o', 'yaml']);
    throw new Error(`${String(error)}\n${stdout}\n${await server.log()}`);
  };
  const ready = (name: string, timeoutMs = waiting.timeoutMs): Promise<boolean> =>
    until(
      `${name} to be ready`,
      async () => {
        const conditions = await at(name, '/status/conditions');
        return (Array.isArray(conditions) ? conditions : []).some(
          (one) => valueAt(one, '/type') === 'Ready' && valueAt(one, '/status') === 'True',
        );
      },
      { ...waiting, timeoutMs },
    ).catch(withObjects);
  const found = async (cluster: OpenCluster, resource: Resource, name: { namespace: string; name: string }) => {
    try {
      return await cluster.client.get(resource, name);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  const instance = (name: string): KubeObject => ({
    apiVersion: apiVersionOf(serviceInstances),
    kind: serviceInstances.kind,
    metadata: { namespace: shop, name },
    spec: { serviceOfferingName: 'connectivity' },
  });

  it('create a network, a cluster in it, and a working kubeconfig, without a declared order', async () => {
    await create('managed.yaml', 'orders');
    await ready('orders');
    const get = scriptOf('docs/inventory/run-the-inventory.md', 'kubectl get').replace('fleet', namespace);
    const stdout = await runAsReader({ plane: management, folder: management.directory }, get);
    assert.match(stdout, shown('inventory/run-the-inventory.md', 'WAITING FOR'));
    const uid = String(await at('orders', '/metadata/uid'));
    assert.equal(await at('orders', '/status/outputs/network/vnetName'), `vnet-${uid}`);
    const shoot = String(await at('orders', '/status/outputs/cluster/shootName'));
    const { spec } = await here.client.get(shoots, { namespace, name: shoot });
    assert.equal(valueAt(spec, '/provider/infrastructureConfig/networks/vnet/name'), `vnet-${uid}`);
    const secret = await here.client.get(secrets, { namespace, name: kubeconfigSecretName(uid) });
    const text = Buffer.from(String(valueAt(secret, '/data/config')), 'base64').toString();
    const opened = openCluster(await inlineCredentials(text), { clock });
    await opened.client.get(namespaces, { name: shop });
    await opened.close();
    assert.doesNotMatch(
      stringify(await here.client.get(clusterInventories, { namespace, name: 'orders' })),
      /client-key/,
    );
  });

  it('correct external changes in the next run', async () => {
    const name = { namespace, name: `vnet-${await at('orders', '/metadata/uid')}` };
    await here.client.mergePatch(virtualNetworks, name, { spec: { location: 'elsewhere' } });
    await force('orders', 'network', 'repair');
    const repaired = async (): Promise<boolean> =>
      valueAt(await here.client.get(virtualNetworks, name), '/spec/location') === 'westeurope';
    await until('the repair', repaired, waiting);
    await ready('orders');
  });

  it('serve an existing cluster like a created one', async () => {
    // The management plane itself, so that the entry has a different cluster.
    const data = { config: Buffer.from(await adminKubeconfig(management, 'legacy-admin')).toString('base64') };
    const metadata = { namespace, name: 'legacy-admin' };
    await here.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    await create('byoc.yaml', 'legacy');
    await ready('legacy');
    const outputs = await at('legacy', '/status/outputs');
    assert.deepEqual(Object.keys(outputs as object).sort(), ['connectivity-proxy', 'kubeconfig']);
    const uid = String(await at('legacy', '/metadata/uid'));
    const secret = await here.client.get(secrets, { namespace, name: kubeconfigSecretName(uid) });
    const text = Buffer.from(String(valueAt(secret, '/data/config')), 'base64').toString();
    assert.match(text, /"token":/);
    for (const component of ['network', 'cluster', 'kubeconfig']) {
      assert.equal(await found(here, reconcileRuns, { namespace, name: `legacy.${component}` }), undefined);
    }
  });

  it('are triggered by a service instance in the cluster, only for that entry, and without the interval', async () => {
    const others = await watched('legacy');
    await there.client.create(serviceInstances, instance('first'));
    await until('the proxy', async () => (await found(there, deployments, proxy)) !== undefined, waiting);
    const reasons = async (): Promise<boolean> =>
      String(valueAt(await run('orders', 'connectivity-proxy'), '/spec/reasons')).includes(
        'Remote:managed/serviceinstances.services.cloud.sap.com',
      );
    await until('the reason', reasons, waiting);
    assert.equal(await seq('legacy', 'connectivity-proxy'), others);
    await there.client.delete(serviceInstances, { namespace: shop, name: 'first' });
    await until('the proxy to go', async () => (await found(there, deployments, proxy)) === undefined, waiting);
  });

  it('are called soon after each of 20 service instances in the cluster', async () => {
    const uid = String(await at('orders', '/metadata/uid'));
    const idle = async (): Promise<boolean> =>
      valueAt(await run('orders', 'connectivity-proxy'), '/spec/phase') === 'Idle';
    const latencies: number[] = [];
    for (let i = 0; i < 20; i++) {
      await until('the proxy to be idle', idle, waiting);
      let calledMs: number | undefined;
      fleet.onCall = (component, entryUid) => {
        if (component === 'connectivity-proxy' && entryUid === uid) calledMs ??= performance.now();
      };
      const beganMs = performance.now();
      await there.client.create(serviceInstances, instance(`many-${i}`));
      await until('the call', () => Promise.resolve(calledMs !== undefined), { ...waiting, everyMs: 5 });
      latencies.push((calledMs ?? Number.NaN) - beganMs);
    }
    fleet.onCall = () => {};
    const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)];
    console.log(`      remote event → called: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
    assert.ok(p99 < 1_000, `p99 was ${p99} ms`);
    for (let i = 0; i < 20; i++) await there.client.delete(serviceInstances, { namespace: shop, name: `many-${i}` });
    await until('the proxy to go', async () => (await found(there, deployments, proxy)) === undefined, waiting);
    await until('the proxy to be idle', idle, waiting);
  });

  it('answer Retry with an expired kubeconfig, and are called with the next one', async () => {
    const uid = String(await at('legacy', '/metadata/uid'));
    const name = { namespace, name: kubeconfigSecretName(uid) };
    const secret = await here.client.get(secrets, name);
    const text = Buffer.from(String(valueAt(secret, '/data/config')), 'base64').toString();
    const ended = text.replace(/"token":"[^"]+"/, '"token":"ended"');
    assert.notEqual(ended, text);
    await here.client.mergePatch(secrets, name, { data: { config: Buffer.from(ended).toString('base64') } });
    await force('legacy', 'connectivity-proxy', 'ended');
    const outcome = async (): Promise<unknown> =>
      valueAt(await run('legacy', 'connectivity-proxy'), '/spec/lastOutcome/outcome');
    await until('a run that is to be retried', async () => (await outcome()) === 'Retry', waiting);
    const refused = await run('legacy', 'connectivity-proxy');
    assert.match(String(valueAt(refused.spec, '/lastOutcome/message')), /401|Unauthorized/);
    await force('legacy', 'byoc', 'ended');
    await until('a run with the next one', async () => (await outcome()) === 'Done', waiting);
    const history = JSON.stringify(valueAt((await run('legacy', 'connectivity-proxy')).spec, '/history'));
    assert.doesNotMatch(history, /"Failed"/);
    await ready('legacy');
  });

  it('replace a kubeconfig by the force annotation, and trigger its readers', async () => {
    for (const [entry, producer] of [
      ['orders', 'kubeconfig'],
      ['legacy', 'byoc'],
    ] as const) {
      const version = await at(entry, '/status/outputs/kubeconfig/version');
      const before = Number(await seq(entry, 'connectivity-proxy'));
      await force(entry, producer, 'rotate');
      const changed = async (): Promise<boolean> => (await at(entry, '/status/outputs/kubeconfig/version')) !== version;
      await until('another version', changed, waiting);
      const woken = async (): Promise<boolean> => {
        const { spec } = await run(entry, 'connectivity-proxy');
        const outcome = valueAt(spec, '/lastOutcome');
        return Number(valueAt(outcome, '/seq')) > before && valueAt(outcome, '/outcome') === 'Done';
      };
      await until('its reader', woken, waiting);
    }
  });

  it('are retried while their cluster is unreachable, and others continue', async () => {
    proxied.refuse();
    proxied.resetAll();
    await force('orders', 'connectivity-proxy', 'away');
    const retried = async (): Promise<boolean> =>
      valueAt(await run('orders', 'connectivity-proxy'), '/spec/lastOutcome/outcome') === 'Retry';
    await until('a run that is to be retried', retried, waiting);
    const before = Number(await seq('legacy', 'connectivity-proxy'));
    await force('legacy', 'connectivity-proxy', 'meanwhile');
    const ran = async (): Promise<boolean> => {
      const outcome = valueAt(await run('legacy', 'connectivity-proxy'), '/spec/lastOutcome');
      return Number(valueAt(outcome, '/seq')) > before && valueAt(outcome, '/outcome') === 'Done';
    };
    await until('the other entry', ran, waiting);
    const isWatched = async (entry: string): Promise<unknown> => {
      const conditions = await at(entry, '/status/conditions');
      return (Array.isArray(conditions) ? conditions : []).find(
        (one) => valueAt(one, '/type') === 'RemoteWatchHealthy',
      );
    };
    const hasStatus = (entry: string, status: string) => async (): Promise<boolean> =>
      valueAt(await isWatched(entry), '/status') === status;
    await until('the entry to say so', hasStatus('orders', 'False'), waiting);
    assert.match(String(valueAt(await isWatched('orders'), '/message')), /^the watch of serviceinstances fails: /);
    assert.equal(valueAt(await isWatched('legacy'), '/status'), 'True');
    assert.match(await server.metrics(), /^drawbridge_inventory_remote_watch_unhealthy 1$/m);
    await proxied.pass();
    await until('the entry to say that it is back', hasStatus('orders', 'True'), waiting);
    // Each attempt while it was away doubled the time until the next one.
    await ready('orders', 150_000);
  });

  it('tear down without a declared order, and keep an existing cluster', async () => {
    await there.client.create(serviceInstances, instance('second'));
    await until('the proxy', async () => (await found(there, deployments, proxy)) !== undefined, waiting);
    await Promise.all(['orders', 'legacy'].map((name) => here.client.delete(clusterInventories, { namespace, name })));
    const gone = async (): Promise<boolean> =>
      (await here.client.list(clusterInventories, { namespace })).items.length === 0;
    await until('the end of both', gone, waiting).catch(withObjects);
    for (const resource of [virtualNetworks, shoots]) {
      assert.deepEqual((await here.client.list(resource, { namespace })).items, []);
    }
    assert.equal(await found(there, deployments, proxy), undefined);
    await here.client.get(namespaces, { name: namespace });
  });

  /** The number of the last proxy run after the first list of its cluster, which also triggers a run. */
  const watched = (entry: string): Promise<number> =>
    until(
      `the cluster of ${entry} to be watched`,
      async () => {
        const { spec } = await run(entry, 'connectivity-proxy');
        const seen = JSON.stringify([valueAt(spec, '/reasons'), valueAt(spec, '/history')]).includes('Remote:');
        return seen && valueAt(spec, '/phase') === 'Idle' && Number(valueAt(spec, '/seq'));
      },
      waiting,
    );

  const force = (entry: string, component: string, value: string): Promise<KubeObject> =>
    here.client.mergePatch(
      clusterInventories,
      { namespace, name: entry },
      { metadata: { annotations: { [forceAnnotation(component)]: value } } },
    );
});
