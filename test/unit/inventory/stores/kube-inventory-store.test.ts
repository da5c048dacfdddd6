import assert from 'node:assert/strict';
import { clusterInventories } from '../../../../src/api/inventory/names.ts';
import { entryView, KubeInventoryStore } from '../../../../src/inventory/stores/kube-inventory-store.ts';
import type { Client } from '../../../../src/kube/client.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('a write of an entry with an invalid answer', () => {
  it('says which CRDs to install', async () => {
    const clock = new SimulatedClock();
    let patches = 0;
    const client: Pick<Client, 'mergePatch'> = {
      mergePatch: (_resource, { name }) => {
        patches += 1;
        return Promise.resolve({ apiVersion: '', kind: '', metadata: { name } });
      },
    };
    const watched = new InformerStore({ resource: clusterInventories, project: entryView }, clock, silentLog);
    const store = new KubeInventoryStore(client as Client, watched);
    const { signal } = new AbortController();
    const ref = { namespace: 'inv', name: 'one', uid: 'u' };
    const going = store.patch(ref, 'status', { status: { outputs: {} } }, { resourceVersion: '1', signal });
    await assert.rejects(going, /answer for ClusterInventory one is not valid/);
    assert.equal(patches, 1);
  });
});
