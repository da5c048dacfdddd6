import assert from 'node:assert/strict';
import { installInventoryKinds, removeInventoryKinds } from '../../../sandbox/inventory-kinds.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { clusterInventories } from '../../../src/api/inventory/names.ts';
import { apiVersionOf } from '../../../src/api/object.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { OutputWriter } from '../../../src/inventory/manager/output-writer.ts';
import type { RunStore } from '../../../src/inventory/ports.ts';
import { entryView, KubeInventoryStore } from '../../../src/inventory/stores/kube-inventory-store.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { isConflict } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { WriteThroughCache } from '../../../src/kube/write-through-cache.ts';
import { registrationOf } from '../../support/inventory/registrations.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

describe('an entry that is deleted and created again while a status write is on its way', () => {
  let plane: Plane;
  let cluster: OpenCluster;
  let namespace: string;
  let entries: KubeInventoryStore;
  let release: () => void;
  const signal = AbortSignal.timeout(300_000);

  before(async function () {
    this.timeout(240_000);
    plane = await sharedPlane();
    await installInventoryKinds(plane);
    namespace = await testNamespace('replaced', plane);
    cluster = openCluster(await fileCredentials(plane.adminKubeconfig), { clock: systemClock });
    const watched = cluster.watch({ resource: clusterInventories, namespace, project: entryView });
    ({ release } = watched);
    entries = new KubeInventoryStore(cluster.client, watched.store);
    await entries.whenSynced(signal);
  });
  after(async function () {
    this.timeout(120_000);
    release?.();
    await cluster?.close();
    await removeInventoryKinds(plane);
  });

  const create = async (name: string): Promise<Entry> => {
    const { apiVersion, kind } = { apiVersion: apiVersionOf(clusterInventories), kind: clusterInventories.kind };
    const metadata = { namespace, name };
    const entry = entryView(
      await cluster.client.create(clusterInventories, { apiVersion, kind, metadata, spec: { suspend: true } }),
    );
    assert.ok(entry);
    return entry;
  };
  const replace = async ({ ref }: Entry): Promise<Entry> => {
    await cluster.client.delete(clusterInventories, ref);
    return create(ref.name);
  };
  const status = async ({ ref }: Entry): Promise<unknown> => (await cluster.client.get(clusterInventories, ref)).status;

  it('does not get the status of the deleted one', async () => {
    const first = await create('one');
    const second = await replace(first);
    const { ref, resourceVersion } = first;
    const patch = { status: { waitingFor: 'network' } };
    await assert.rejects(entries.patch(ref, 'status', patch, { resourceVersion, signal }), isConflict);
    assert.equal(await status(second), undefined);
  });

  it('does not get the outputs of the deleted one', async () => {
    const first = await create('two');
    const latestEntries = new WriteThroughCache<Entry>({
      watched: () => first,
      uidOf: (entry) => entry.ref.uid,
      clock: systemClock,
    });
    const writer = new OutputWriter({
      entries,
      runs: {} as RunStore,
      access: { deleteAccount: async () => {} },
      registrations: { get: () => undefined, all: () => [], problem: () => undefined },
      latestEntries,
    });
    const publish = (v: string) =>
      writer.apply(first.ref, registrationOf('network'), { network: { v } }, AbortSignal.timeout(30_000));
    assert.equal(await publish('A'), undefined);
    assert.deepEqual(await status(first), { outputs: { network: { v: 'A' } } });
    const second = await replace(first);
    assert.equal(await publish('B'), undefined);
    assert.equal(await status(second), undefined);
  });
});
