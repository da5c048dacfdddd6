import assert from 'node:assert/strict';
import { componentReconcilers, reconcileRuns } from '../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import { openAdmissionReads } from '../../../src/inventory/admission-reads.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { MemoryCluster } from '../../support/binding/memory-cluster.ts';
import { pluck } from '../../support/pluck.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const { signal } = new AbortController();
const of = ({ kind }: { kind: string }) => ({ apiVersion: apiVersionOf(componentReconcilers), kind });
const registration = (name: string, spec: object = {}) => ({
  ...of(componentReconcilers),
  metadata: { name },
  spec: { endpoint: { url: 'http://127.0.0.1:1' }, ...spec },
});
const entry = { namespace: 'fleet', name: 'rt-1', uid: 'a' };
const run = (spec: object) => ({
  ...of(reconcileRuns),
  metadata: { namespace: 'fleet', name: 'rt-1.network' },
  spec: { entry: { name: 'rt-1', uid: 'a' }, component: 'network', seq: 3, ...spec },
});

describe('the reads of the inventory webhooks', () => {
  let cluster: MemoryCluster;
  beforeEach(() => {
    cluster = new MemoryCluster(new SimulatedClock());
  });

  it('return the paths of a component from the store, and live if the store lacks it', async () => {
    const { reads } = openAdmissionReads(cluster);
    cluster.put(componentReconcilers, registration('network', { writes: ['/status/outputs/net'] }));
    assert.deepEqual(await reads.writesOf('network', signal), ['/status/outputs/net']);
    assert.deepEqual(cluster.calls, []);
    cluster.deliver = () => {};
    cluster.put(componentReconcilers, registration('cluster'));
    assert.deepEqual(await reads.writesOf('cluster', signal), ['/status/outputs/cluster']);
    assert.deepEqual(pluck(cluster.calls, 'verb', 'name'), [['get', 'cluster']]);
    assert.equal(await reads.writesOf('nobody', signal), undefined);
  });

  it('return every valid registration', async () => {
    const { reads } = openAdmissionReads(cluster);
    cluster.put(componentReconcilers, registration('network', { modes: ['byoc'] }));
    cluster.put(componentReconcilers, { ...registration('odd'), spec: 7 });
    const found = await reads.registrations(signal);
    assert.deepEqual(
      found.map(({ name, spec }) => [name, spec.modes]),
      [['network', ['byoc']]],
    );
  });

  it('return the record under its name, but none of another entry', async () => {
    const { reads } = openAdmissionReads(cluster);
    const idOf = async () => (await reads.latestRun(entry, 'network', signal))?.spec.credentialID;
    const named = (name: string, uid: string, credentialID: string) => ({
      ...run({ entry: { name: 'rt-1', uid }, phase: 'Running', credentialID }),
      metadata: { namespace: 'fleet', name },
    });
    cluster.put(reconcileRuns, named('a.network', 'a', 'JTI=another name'));
    assert.equal(await idOf(), undefined);
    cluster.put(reconcileRuns, named('rt-1.network', 'b', 'JTI=other'));
    assert.equal(await idOf(), undefined);
    cluster.put(reconcileRuns, named('rt-1.network', 'a', 'JTI=1'));
    assert.equal(await idOf(), 'JTI=1');
  });

  it('return the live record, and none if it is invalid', async () => {
    const { reads } = openAdmissionReads(cluster);
    assert.equal(await reads.latestRun(entry, 'network', signal), undefined);
    cluster.put(reconcileRuns, run({ phase: 'Running', credentialID: 'JTI=1' }));
    assert.equal((await reads.latestRun(entry, 'network', signal))?.spec.credentialID, 'JTI=1');
    cluster.put(reconcileRuns, run({ phase: 'Asleep' }));
    assert.equal(await reads.latestRun(entry, 'network', signal), undefined);
  });

  it('reject if the API server does not answer', async () => {
    const { reads } = openAdmissionReads(cluster);
    cluster.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    for (const asked of [
      reads.latestRun(entry, 'network', signal),
      reads.writesOf('network', signal),
      reads.registrations(signal),
    ]) {
      await assert.rejects(asked, { code: 503 });
    }
  });

  it('name entries with runs of a component with one limited list', async () => {
    const paths: string[] = [];
    let items: unknown[] = [
      { metadata: { namespace: 'fleet', name: 'a.network' }, spec: { entry: { name: 'orders' } } },
    ];
    const raw = (path: string): Promise<unknown> => {
      paths.push(path);
      return Promise.resolve({ items });
    };
    const { reads } = openAdmissionReads({ client: { ...cluster.client, raw }, watch: (spec) => cluster.watch(spec) });
    assert.deepEqual(await reads.entriesOf('network', signal), ['fleet/orders']);
    items = [];
    assert.deepEqual(await reads.entriesOf('network', signal), []);
    assert.match(
      paths[0] ?? '',
      /\/reconcileruns\?labelSelector=inventory.drawbridge.dev%2Fcomponent%3Dnetwork&limit=4$/,
    );
  });
});
