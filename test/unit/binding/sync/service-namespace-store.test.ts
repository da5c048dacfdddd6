import assert from 'node:assert/strict';
import { apiServiceNamespaces } from '../../../../src/api/binding/names.ts';
import { type KubeObject, keyOf } from '../../../../src/api/object.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { openProviderStores } from '../../../../src/binding/stores/provider-stores.ts';
import { ServiceNamespaceStore } from '../../../../src/binding/sync/service-namespace-store.ts';
import { projectObject, type SyncedObject } from '../../../../src/binding/sync/synced-object.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { StoreEvent } from '../../../../src/kube/store.ts';
import { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import { serviceNamespaceManifest } from '../../../support/binding/objects.ts';
import { unlisted } from '../../../support/binding/stores.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('store of service namespaces', () => {
  const clusterNamespace = 'kb-acme';
  let cluster: MemoryCluster;
  let store: ServiceNamespaceStore<SyncedObject>;
  let told: string[];
  let quiet: number;

  const pair = (name: string, serviceNamespace: string | undefined, namespace = clusterNamespace): void => {
    const status = serviceNamespace === undefined ? {} : { namespace: serviceNamespace };
    cluster.put(apiServiceNamespaces, serviceNamespaceManifest({ metadata: { namespace, name }, status }));
  };
  const unpair = (name: string): void => cluster.drop(apiServiceNamespaces, { namespace: clusterNamespace, name });
  const put = (namespace: string, name: string): KubeObject =>
    cluster.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } });
  const tell = (event: StoreEvent<SyncedObject>): void => void told.push(`${event.type} ${event.key}`);
  const keys = (): string[] => [...store.list()].map(({ object }) => keyOf(object.metadata));

  beforeEach(() => {
    cluster = new MemoryCluster(new SimulatedClock());
    const { serviceNamespaces } = openProviderStores(cluster, clusterNamespace).stores;
    quiet = cluster.watches;
    const indexes = { name: ({ object }: SyncedObject) => [object.metadata.name] };
    const spec = { resource: configMaps, project: projectObject, indexes };
    store = new ServiceNamespaceStore({ cluster, clusterNamespace, serviceNamespaces, spec });
    told = [];
  });

  it('shows the objects of our service namespaces, and no others', async () => {
    put('kb-acme-a', 'x');
    put('kb-acme-b', 'x');
    put('kb-other-c', 'x');
    pair('a', 'kb-acme-a');
    pair('b', undefined);
    pair('c', 'kb-other-c', 'kb-other');
    assert.deepEqual(keys(), ['kb-acme-a/x']);
    pair('b', 'kb-acme-b');
    assert.deepEqual(keys(), ['kb-acme-a/x', 'kb-acme-b/x']);
    assert.equal(store.get('kb-acme-b/x')?.key, 'kb-acme-b/x');
    assert.equal(store.byIndex('name', 'x').length, 2);
    assert.ok(store.isListed('kb-acme-b/gone'));
    for (const other of ['kb-other-c/x', 'x']) assert.ok(!store.isListed(other));
    assert.equal(store.synced, true);
  });

  it('notifies listeners when service namespaces are added, changed, and removed', async () => {
    pair('a', 'kb-acme-a');
    put('kb-acme-a', 'x');
    const unsubscribe = store.subscribe(tell);
    const listed: string[] = [];
    store.onListed((namespace) => listed.push(namespace));
    put('kb-acme-b', 'y');
    pair('b', 'kb-acme-b');
    put('kb-acme-b', 'z');
    pair('a', 'kb-acme-a2');
    unpair('b');
    put('kb-acme-b', 'w');
    assert.deepEqual(told, [
      'added kb-acme-a/x',
      'added kb-acme-b/y',
      'added kb-acme-b/z',
      'deleted kb-acme-a/x',
      'deleted kb-acme-b/y',
      'deleted kb-acme-b/z',
    ]);
    await Promise.resolve();
    assert.deepEqual(listed, ['kb-acme-a2'], 'only of those that are still there');
    assert.equal(cluster.watches, quiet + 1);
    unsubscribe();
    put('kb-acme-a2', 'v');
    assert.equal(told.length, 6);
  });

  it('watches a namespace until the last of two APIServiceNamespaces is gone', () => {
    pair('a', 'shared');
    pair('b', 'shared');
    assert.equal(cluster.watches, quiet + 1);
    unpair('a');
    assert.equal(cluster.watches, quiet + 1);
    unpair('b');
    assert.equal(cluster.watches, quiet);
  });

  it('is synced once the APIServiceNamespaces and their namespaces are listed', async () => {
    const clock = new SimulatedClock();
    let list = (): void => assert.fail('nothing watches them');
    const cold: Pick<Cluster, 'watch'> = {
      watch: (spec) => {
        if (spec.resource !== apiServiceNamespaces) return cluster.watch(spec);
        const handle = unlisted(spec, clock);
        list = () => {
          const listing = handle.store.beginList();
          listing.add(cluster.list(apiServiceNamespaces));
          listing.commit();
        };
        return handle;
      },
    };
    const { serviceNamespaces } = openProviderStores(cold as Cluster, clusterNamespace).stores;
    const spec = { resource: configMaps, project: projectObject };
    const late = new ServiceNamespaceStore({ cluster, clusterNamespace, serviceNamespaces, spec });
    put('kb-acme-a', 'x');
    pair('a', 'kb-acme-a');
    assert.equal(late.synced, false);
    list();
    assert.deepEqual([late.synced, late.isListed('kb-acme-a/x')], [true, true]);
    late.close();
  });

  it('ends every watch when it is closed', async () => {
    pair('a', 'kb-acme-a');
    store.subscribe(tell);
    store.close();
    store.close();
    pair('b', 'kb-acme-b');
    assert.deepEqual([cluster.watches, told], [quiet, []]);
  });
});
