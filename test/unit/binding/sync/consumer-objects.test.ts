import assert from 'node:assert/strict';
import type { BoundSchemaView, ExportView } from '../../../../src/binding/stores/provider-stores.ts';
import { consumerResource, syncVersion } from '../../../../src/binding/sync/consumer-objects.ts';

/** `v1`, `v1-` not served, `v1*` stored. */
const schema = (versions: string, scope = 'Namespaced'): BoundSchemaView =>
  ({
    group: 'kitchen.example',
    names: { plural: 'kettles', kind: 'Kettle' },
    scope,
    versions: versions.split(' ').map((text) => ({
      name: text.replace(/[-*]/g, ''),
      served: !text.includes('-'),
      storage: text.includes('*'),
    })),
  }) as unknown as BoundSchemaView;
const exported = (versions: readonly string[], resource = 'kettles', group = 'kitchen.example'): ExportView =>
  ({ resources: [{ group, resource, versions }] }) as unknown as ExportView;

describe('the version that is synced', () => {
  const cases: [what: string, versions: string, asked: readonly string[], expected: string | undefined][] = [
    ['is the stored one, also where it is not the first', 'v1alpha1 v1beta1 v1*', [], 'v1'],
    ['is the stored one among those that the export asks for', 'v1alpha1 v1beta1* v1', ['v1', 'v1beta1'], 'v1beta1'],
    [
      'is the first that the export asks for when the stored one is not among them',
      'v1* v1beta1 v2',
      ['v2', 'v1beta1'],
      'v1beta1',
    ],
    ['is the first that is served when the stored one is not', 'v1alpha1- v1*- v1beta1 v2', [], 'v1beta1'],
    ['is none when nothing is served', 'v1*- v2-', [], undefined],
    ['is none when what the export asks for is not served', 'v1* v2-', ['v2'], undefined],
    ['is none when the export asks for what there is not', 'v1*', ['v3'], undefined],
  ];
  for (const [what, versions, asked, expected] of cases) {
    it(what, () => assert.equal(syncVersion(schema(versions), exported(asked))?.name, expected));
  }

  it('does not depend on what the export asks of other kinds', () => {
    for (const other of [exported(['v2'], 'pots'), exported(['v2'], 'kettles', 'other.example')]) {
      assert.equal(syncVersion(schema('v1* v2'), other)?.name, 'v1');
    }
  });
});

describe('the bound kind in the consumer', () => {
  it('is served under the version that is synced', () => {
    const kettles = { group: 'kitchen.example', version: 'v2', plural: 'kettles', kind: 'Kettle' };
    assert.deepEqual(consumerResource(schema('v2*'), 'v2'), { ...kettles, namespaced: true });
    assert.deepEqual(consumerResource(schema('v2*', 'Cluster'), 'v2'), { ...kettles, namespaced: false });
  });
});
