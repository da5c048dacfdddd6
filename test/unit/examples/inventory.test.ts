import assert from 'node:assert/strict';
import { referenceComponents } from '../../../examples/inventory/components/reference-components.ts';
import { clusterInventoryKind } from '../../../src/api/inventory/cluster-inventory.ts';
import { componentReconcilerKind } from '../../../src/api/inventory/component-reconciler.ts';
import { readObject } from '../../../src/api/schema/kind.ts';
import { ownOutputRead } from '../../../src/inventory/policy/registration-rules.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { MemoryCluster } from '../../support/binding/memory-cluster.ts';
import { inventoryExample } from '../../support/inventory/examples.ts';

const uid = { uid: 'u', resourceVersion: '1', generation: 1 };

describe('the examples of the inventory', () => {
  for (const file of ['components.yaml', 'component-over-https.yaml']) {
    const registrations = inventoryExample(file).filter(({ kind }) => kind === 'ComponentReconciler');
    for (const object of registrations) {
      it(`${file} has a valid registration of ${object.metadata.name}`, () => {
        const read = readObject(componentReconcilerKind, { ...object, metadata: { ...object.metadata, ...uid } });
        assert.ok(read.ok, JSON.stringify(read));
        assert.equal(ownOutputRead(object.metadata.name, read.value.spec), undefined);
      });
    }
  }

  it('components.yaml names exactly the reference components', () => {
    const management = new MemoryCluster(systemClock);
    const { client } = management;
    const built = referenceComponents({ management: client, connect: () => client, clock: systemClock });
    const named = inventoryExample('components.yaml').map(({ metadata }) => metadata.name);
    assert.deepEqual(named.sort(), [...built.keys()].sort());
  });

  for (const file of ['managed.yaml', 'byoc.yaml']) {
    it(`${file} is a valid entry`, () => {
      for (const object of inventoryExample(file)) {
        const metadata = { ...object.metadata, namespace: 'fleet', ...uid };
        const read = readObject(clusterInventoryKind, { ...object, metadata });
        assert.ok(read.ok, JSON.stringify(read));
      }
    });
  }
});
