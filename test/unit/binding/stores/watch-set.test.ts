import assert from 'node:assert/strict';
import { configMaps } from '../../../../src/api/resources.ts';
import { WatchSet } from '../../../../src/binding/stores/watch-set.ts';
import { projectObject, type SyncedObject } from '../../../../src/binding/sync/synced-object.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { InformerStore } from '../../../../src/kube/informer-store.ts';
import { storeOf } from '../../../support/binding/stores.ts';

const object = (resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'team-a', name: 'menu', uid: 'u', resourceVersion },
});

describe('a set of watches', () => {
  let set: WatchSet<SyncedObject>;
  let first: InformerStore<SyncedObject>;
  let second: InformerStore<SyncedObject>;

  beforeEach(() => {
    [first, second] = [storeOf([], projectObject), storeOf([], projectObject)];
    const stores = [first, second].values();
    const watch = () => ({ store: stores.next().value, release() {} });
    set = new WatchSet({ watch } as unknown as Cluster, { resource: configMaps, project: projectObject });
    for (const labelSelector of ['a', 'b']) set.begin(labelSelector, { labelSelector });
  });

  it('shows the newer one if two watches show an object', () => {
    first.apply('ADDED', object('5'), '5');
    second.apply('ADDED', object('9'), '9');
    assert.equal(set.get('team-a/menu')?.resourceVersion, '9');
    first.apply('MODIFIED', object('11'), '11');
    assert.equal(set.get('team-a/menu')?.resourceVersion, '11');
  });

  it('reports a refusal before other failures, until its watch ends', () => {
    let refusals = 0;
    set.onRefusal(() => refusals++);
    first.failed('500: broken');
    second.failed('403: no', 403);
    assert.deepEqual([set.failing?.reason, refusals], ['403: no', 1]);
    set.end('b');
    assert.deepEqual([set.failing?.reason, refusals], ['500: broken', 2]);
  });
});
