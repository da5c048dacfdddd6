import assert from 'node:assert/strict';
import { clusterNamespaceAnnotation, consumerUidAnnotation } from '../../../../src/api/binding/names.ts';
import { type Action, plan, type Situation, type Terms } from '../../../../src/binding/sync/plan.ts';
import { projectObject } from '../../../../src/binding/sync/synced-object.ts';

const provider = { group: 'kitchen.example', version: 'v1', plural: 'ovens', kind: 'Oven', namespaced: false };
const created = Date.parse('2026-11-21T09:00:00Z');
const copy = projectObject({
  apiVersion: 'kitchen.example/v1',
  kind: 'Oven',
  metadata: {
    name: 'kb-acme-big',
    uid: 'p-1',
    resourceVersion: '5',
    creationTimestamp: '2026-11-21T09:00:00Z',
    annotations: { [clusterNamespaceAnnotation]: 'kb-acme', [consumerUidAnnotation]: 'c-1' },
  },
});
const alone: Situation = {
  mode: 'sync',
  consumer: undefined,
  seenDeleted: undefined,
  place: { kind: 'at', key: 'kb-acme-big' },
  copy,
  copyGoing: false,
  copyGone: false,
};
const terms: Terms = { clusterNamespace: 'kb-acme', provider, owner: undefined, statusSubresource: true };
const verbs = (situation: Partial<Situation>, kindSinceMs: number | undefined): Action['do'][] =>
  plan({ ...alone, ...situation }, { ...terms, kindSinceMs }).map((action) => action.do);

describe('a copy whose object nobody saw going', () => {
  it('is deleted when it is younger than the kind is here', () => {
    assert.deepEqual(verbs({}, created - 1000), ['deleteCopy']);
    assert.deepEqual(verbs({}, undefined), ['deleteCopy']);
  });

  it('stays when it is older: an earlier binding left it', () => {
    assert.deepEqual(verbs({}, created), []);
    assert.deepEqual(verbs({}, created + 1000), []);
  });

  it('goes with the binding, and with an object that was seen going', () => {
    assert.deepEqual(verbs({ mode: 'drain' }, created + 1000), ['deleteCopy']);
    assert.deepEqual(verbs({ seenDeleted: 'c-1' }, created + 1000), ['deleteCopy']);
  });
});
