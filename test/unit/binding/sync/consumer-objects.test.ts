import assert from 'node:assert/strict';
import type { BoundSchemaView, ExportView } from '../../../../src/binding/stores/provider-stores.ts';
import { ConsumerObjects, syncVersion } from '../../../../src/binding/sync/consumer-objects.ts';
import { depsOf } from '../../../support/binding/deps.ts';
import { SyncStage } from '../../../support/binding/sync-stage.ts';
import { exportOf, schemaOf, versionOf } from '../../../support/binding/views.ts';

/** Notation of versions: `v1` is served, `v1-` is not served, `v1*` is stored. */
const schema = (versions: string): BoundSchemaView => schemaOf({ versions: versions.split(' ').map(versionIn) });
const versionIn = (text: string) =>
  versionOf({ name: text.replace(/[-*]/g, ''), served: !text.includes('-'), storage: text.includes('*') });
const exported = (versions: readonly string[], resource = 'kettles', group = 'kitchen.example'): ExportView =>
  exportOf({ resources: [{ group, resource, versions: [...versions] }] });

describe('the version that is synced', () => {
  const cases: [what: string, versions: string, asked: readonly string[], expected: string | undefined][] = [
    ['is the storage version, even if it is not the first', 'v1alpha1 v1beta1 v1*', [], 'v1'],
    ['is the storage version if the export names it', 'v1alpha1 v1beta1* v1', ['v1', 'v1beta1'], 'v1beta1'],
    ['is the first that the export names if it lacks the stored one', 'v1* v1beta1 v2', ['v2', 'v1beta1'], 'v1beta1'],
    ['is the first served version if the storage version is not served', 'v1alpha1- v1*- v1beta1 v2', [], 'v1beta1'],
    ['is none if no version is served', 'v1*- v2-', [], undefined],
    ['is none if the versions that the export names are not served', 'v1* v2-', ['v2'], undefined],
    ['is none if the export names a version that does not exist', 'v1*', ['v3'], undefined],
  ];
  for (const [what, versions, asked, expected] of cases) {
    it(what, () => assert.equal(syncVersion(schema(versions), exported(asked))?.name, expected));
  }

  it('does not depend on the versions that the export names for other kinds', () => {
    for (const other of [exported(['v2'], 'pots'), exported(['v2'], 'kettles', 'other.example')]) {
      assert.equal(syncVersion(schema('v1* v2'), other)?.name, 'v1');
    }
  });
});

describe('the objects of a bound kind', () => {
  it('do not count as listed, and deleted, once they are closed', () => {
    const stage = new SyncStage();
    const { crds } = depsOf(stage.consumer, stage.clock).stores;
    const resource = stage.kettles.consumer;
    const objects = new ConsumerObjects({ cluster: stage.consumer, crds, crd: 'kettles.kitchen.example', resource });
    assert.equal(objects.state, 'listed');
    objects.close();
    assert.equal(objects.state, 'unknown');
  });
});
