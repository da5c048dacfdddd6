import assert from 'node:assert/strict';
import { clusterInventories, reconcileRuns, runName } from '../../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../../src/api/object.ts';
import type { RunRecord } from '../../../../src/inventory/core/run-record.ts';
import type { RecordChange } from '../../../../src/inventory/ports.ts';
import { entryView, KubeInventoryStore } from '../../../../src/inventory/stores/kube-inventory-store.ts';
import { KubeRunStore, runView } from '../../../../src/inventory/stores/kube-run-store.ts';
import { runObject } from '../../../../src/inventory/stores/run-object.ts';
import { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import { runRecordOf } from '../../../support/inventory/run-record.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const uid = 'victim';
const key = { entryUid: uid, component: 'network' };
const { signal } = new AbortController();

describe('records of runs', () => {
  let cluster: MemoryCluster;
  let runs: KubeRunStore;
  let changes: RecordChange[];
  beforeEach(() => {
    const clock = new SimulatedClock();
    cluster = new MemoryCluster(clock);
    const { client } = cluster;
    const records = cluster.watch({ resource: reconcileRuns, project: runView }).store;
    const entries = cluster.watch({ resource: clusterInventories, project: entryView }).store;
    runs = new KubeRunStore(client, records, new KubeInventoryStore(client, entries), clock);
    changes = [];
    runs.subscribe((change) => changes.push(change));
  });

  const makeEntry = () =>
    cluster.put(clusterInventories, {
      apiVersion: apiVersionOf(clusterInventories),
      kind: clusterInventories.kind,
      metadata: { namespace: 'fleet', name: 'rt-1', uid },
      spec: { mode: 'managed' },
    });
  const recordOf = (namespace: string, seq: number): RunRecord =>
    runRecordOf({ namespace, name: 'rt-1', uid }, { seq, credentialId: `JTI=${namespace}` });
  const put = (namespace: string, seq = 1) => cluster.put(reconcileRuns, runObject(recordOf(namespace, seq)));
  const drop = (namespace: string) =>
    cluster.drop(reconcileRuns, { namespace, name: runName({ name: 'rt-1', uid }, 'network') });
  const found = () => runs.find(key)?.record.credentialId;
  const reported = () =>
    changes.map((change) => (change.kind === 'changed' ? change.stored.record.credentialId : change.kind));

  it('count only in the namespace of their entry', async () => {
    makeEntry();
    put('attacker', 99);
    assert.equal(found(), undefined);
    assert.equal(await runs.load(key, signal), undefined);
    put('fleet');
    put('attacker', 100);
    assert.deepEqual([found(), reported()], ['JTI=fleet', ['JTI=fleet']]);
    assert.equal((await runs.load(key, signal))?.record.entry.namespace, 'fleet');
    drop('attacker');
    assert.deepEqual([found(), reported()], ['JTI=fleet', ['JTI=fleet']]);
    drop('fleet');
    assert.deepEqual([found(), reported()], [undefined, ['JTI=fleet', 'gone']]);
  });

  it('wait for an entry that is watched later', () => {
    put('attacker', 99);
    put('fleet');
    put('fleet', 2);
    put('attacker', 100);
    assert.deepEqual([found(), reported()], [undefined, []]);
    makeEntry();
    assert.deepEqual([found(), reported()], ['JTI=fleet', ['JTI=fleet']]);
    assert.equal(runs.find(key)?.record.seq, 2);
  });

  it('do not reappear with an entry that is watched after their deletion', () => {
    put('fleet');
    drop('fleet');
    makeEntry();
    assert.deepEqual([found(), reported()], [undefined, []]);
  });

  it('have names of the entry and the component, and of the uid only if that would be too long', () => {
    assert.equal(runName({ name: 'orders', uid }, 'network'), 'orders.network');
    assert.equal(runName({ name: 'o'.repeat(250), uid }, 'network'), `${uid}.network`);
  });

  it('do not count under another name than the server gives them', () => {
    makeEntry();
    const named = runObject(recordOf('fleet', 9));
    cluster.put(reconcileRuns, { ...named, metadata: { ...named.metadata, name: `${uid}.network` } });
    assert.equal(runs.find(key), undefined);
  });

  it('wait until that of an earlier entry of the same name is gone', async () => {
    makeEntry();
    const other = { ...recordOf('fleet', 1), entry: { namespace: 'fleet', name: 'rt-1', uid: 'earlier' } };
    cluster.put(reconcileRuns, runObject(other));
    await assert.rejects(runs.swap(recordOf('fleet', 1), undefined, signal), {
      code: 'NameTaken',
      message: /belongs to another entry, or is invalid.*kubectl delete reconcilerun \S+ -n fleet$/,
    });
    drop('fleet');
    assert.equal((await runs.swap(recordOf('fleet', 1), undefined, signal)).kind, 'stored');
  });

  it('are visible as soon as they are written', async () => {
    makeEntry();
    const swap = await runs.swap(recordOf('fleet', 1), undefined, signal);
    assert.equal(swap.kind, 'stored');
    assert.equal(found(), 'JTI=fleet');
  });

  it('are gone if they are deleted before their entry is watched', async () => {
    await runs.swap(recordOf('fleet', 1), undefined, signal);
    assert.equal(found(), 'JTI=fleet');
    drop('fleet');
    assert.equal(found(), undefined);
  });

  it('are not reported to a new listener after removal, although the watch still contains them', async () => {
    makeEntry();
    const { resourceVersion } = put('fleet').metadata;
    cluster.deliver = () => {};
    const stored = runs.find(key);
    assert.equal(stored?.resourceVersion, resourceVersion);
    await runs.remove(stored, signal);
    const late: RecordChange[] = [];
    runs.subscribe((change) => late.push(change));
    assert.deepEqual(late, []);
  });

  it('are reported as gone once, by the delete or the watch', async () => {
    makeEntry();
    const first = await runs.swap(recordOf('fleet', 1), undefined, signal);
    assert.ok(first.kind === 'stored');
    await runs.remove(first.stored, signal);
    assert.equal(found(), undefined);
    assert.deepEqual(
      reported().filter((what) => what === 'gone'),
      ['gone'],
    );
    const again = await runs.swap(recordOf('fleet', 2), undefined, signal);
    assert.equal(again.kind, 'stored');
    assert.equal(runs.find(key)?.record.seq, 2);
  });
});
