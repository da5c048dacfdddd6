import assert from 'node:assert/strict';
import type { KubeObject } from '../../../../src/api/object.ts';
import { copyProjection, projectObject } from '../../../../src/binding/sync/synced-object.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';
const identity = { namespace: 'team-a', name: 'tea', uid: 'u-1', resourceVersion: '5' };
const object = (annotations: Record<string, string>): KubeObject =>
  deepFreeze({
    apiVersion: 'kitchen.example/v1',
    kind: 'Kettle',
    metadata: { ...identity, generation: 2, labels: { app: 'tea' }, annotations, managedFields: [{}] },
    spec: { litres: 2 },
    data: { more: 1 },
    status: { hot: true },
  });

describe('what stores keep of bound objects', () => {
  it('is the object without managedFields and last-applied-configuration', () => {
    const { key, uid, resourceVersion, object: kept } = projectObject(object({ note: 'mine', [lastApplied]: '{}' }));
    assert.deepEqual([key, uid, resourceVersion], ['team-a/tea', 'u-1', '5']);
    const { metadata, ...rest } = object({ note: 'mine' });
    const { managedFields: _, ...others } = metadata;
    assert.deepEqual(kept, { ...rest, metadata: others });
  });

  it('accepts objects without uid, resourceVersion, and annotations', () => {
    const bare = projectObject({ apiVersion: 'v1', kind: 'Kettle', metadata: { name: 'tea' } });
    assert.deepEqual([bare.key, bare.uid, bare.resourceVersion], ['tea', '', '']);
  });
});

describe('what stores keep of copies', () => {
  const project = copyProjection('kb-acme');
  const named = (clusterNamespace: string) => object({ 'kube-bind.io/cluster-namespace': clusterNamespace });

  it('is the whole object for our copies', () => {
    assert.deepEqual(project(named('kb-acme')), projectObject(named('kb-acme')));
  });

  it('is only the metadata of other objects', () => {
    for (const foreign of [named('kb-other'), object({})]) {
      const { apiVersion, kind, metadata } = projectObject(foreign).object;
      assert.deepEqual(project(foreign).object, { apiVersion, kind, metadata });
    }
  });
});
