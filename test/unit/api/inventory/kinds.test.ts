import assert from 'node:assert/strict';
import { clusterInventoryKind } from '../../../../src/api/inventory/cluster-inventory.ts';
import { componentReconcilerKind } from '../../../../src/api/inventory/component-reconciler.ts';
import { reconcileRunKind } from '../../../../src/api/inventory/reconcile-run.ts';
import { readObject } from '../../../../src/api/schema/kind.ts';
import { celRefusals } from '../../../support/cel-rules.ts';

const apiVersion = 'inventory.drawbridge.dev/v1alpha1';
const objectOf = (kind: string, spec: object) => ({ apiVersion, kind, metadata: { name: 'network' }, spec });

describe('the kinds of the inventory', () => {
  it('have the documented defaults', () => {
    const endpoint = { url: 'http://127.0.0.1:1' };
    const registration = readObject(componentReconcilerKind, objectOf('ComponentReconciler', { endpoint }));
    assert.deepEqual(registration.ok && registration.value.spec, {
      endpoint,
      protocol: 'v1',
      modes: ['managed', 'byoc'],
      reads: [],
      kubeconfig: 'none',
      remoteWatches: [],
      intervalSeconds: 3600,
      timeoutSeconds: 5,
      leaseSeconds: 60,
      maxRunSeconds: 3600,
      maxConcurrent: 32,
      retry: { baseSeconds: 1, capSeconds: 300 },
      notReadyAlertAfterSeconds: 900,
    });
    const entry = readObject(clusterInventoryKind, objectOf('ClusterInventory', { components: { network: {} } }));
    assert.deepEqual(entry.ok && entry.value.spec, {
      mode: 'managed',
      suspend: false,
      components: { network: { enabled: true } },
    });
    const record = { entry: { name: 'a', uid: 'u' }, component: 'network' };
    const run = readObject(reconcileRunKind, objectOf('ReconcileRun', record));
    assert.equal(run.ok && run.value.spec.phase, 'Idle');
  });

  for (const [why, endpoint, refusals] of [
    ['accepts https', { url: 'https://network.example.org' }, 0],
    ['accepts http on loopback', { url: 'http://127.0.0.1:8080/base' }, 0],
    ['rejects http on other addresses', { url: 'http://network.example.org' }, 1],
    ['rejects http on a name that begins like loopback', { url: 'http://127.0.0.1.example.org' }, 1],
    [
      'rejects two endpoints',
      { url: 'https://network.example.org', service: { namespace: 'a', name: 'b', port: 443 } },
      1,
    ],
    ['rejects none', {}, 1],
  ] as const) {
    it(why, () => {
      const schema = componentReconcilerKind.structural.spec.properties?.['endpoint'] ?? {};
      assert.equal(celRefusals(schema, endpoint).length, refusals);
    });
  }

  for (const [field, paths] of [
    ['reads', ['/status/conditions', '/metadata/labels', 'spec', '/spec/', '/status/outputsx']],
    ['writes', ['/status/outputs', '/spec/cluster', '/status/components', '/status/outputs/']],
  ] as const) {
    for (const path of paths) {
      it(`rejects ${path} in ${field}`, () => {
        const spec = { endpoint: { url: 'http://127.0.0.1:1' }, [field]: [path] };
        assert.equal(readObject(componentReconcilerKind, objectOf('ComponentReconciler', spec)).ok, false);
      });
    }
  }

  it('keeps the mode of an entry immutable', () => {
    const { spec } = clusterInventoryKind.structural;
    assert.equal(celRefusals(spec, { mode: 'byoc' }, { mode: 'managed' }).length, 1);
    assert.equal(celRefusals(spec, { mode: 'managed', kubeconfigSecretRef: { name: 'a', key: 'b' } }).length, 1);
  });
});
