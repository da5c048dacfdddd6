import assert from 'node:assert/strict';
import {
  clusterNamespaceAnnotation,
  consumerUidAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../../src/api/binding/names.ts';
import {
  copyKeyOf,
  type ObjectAction,
  type ObjectFacts,
  plan,
  type SyncContext,
} from '../../../../src/binding/sync/plan.ts';
import type { SyncedObject } from '../../../../src/binding/sync/synced-object.ts';
import {
  clusterNamespace,
  copyAnnotations,
  copyOfKettle,
  deletionTimestamp,
  heldKettle,
  kettle,
  noFacts,
  syncContext,
} from './support.ts';

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';
const copyKey = 'kb-acme-team-a/tea';
const planned = (facts: Partial<ObjectFacts>, changed: Partial<SyncContext> = {}): readonly ObjectAction[] =>
  plan({ ...noFacts, ...facts }, { ...syncContext, ...changed });
const verbs = (...args: Parameters<typeof planned>): string[] => planned(...args).map((action) => action.do);

const going = { deletionTimestamp };
const { [consumerUidAnnotation]: _, ...olderAnnotations } = copyAnnotations;
const marked = (annotations: Record<string, string>) => copyOfKettle({ metadata: { annotations } });
const foreign = marked({ ...copyAnnotations, [clusterNamespaceAnnotation]: 'kb-other' });
const native = marked({});
const older = marked(olderAnnotations);
const ofAnother = marked({ ...copyAnnotations, [consumerUidAnnotation]: 'c-0' });
const copy = copyOfKettle();
const withStatus = (status: object) => copyOfKettle({ status });
const copyGoes = copyOfKettle({ metadata: going });
/** The object after its first sync, and while it is being deleted. */
const held = heldKettle();
const leaving = heldKettle({ metadata: going });
const changed = heldKettle({ spec: { litres: 3 } });
const both = (consumer: SyncedObject, itsCopy: SyncedObject) => ({ consumer, copy: itsCopy });
const unmapped = { kind: 'unmapped', namespace: 'team-a', requested: false } as const;

/** The double that JSON.parse returns for 9007199254740993. */
const inexact = 2 ** 53;

describe('the plan of a key', () => {
  const cases: [string, Partial<ObjectFacts>, string][] = [
    ['creates the copy of a new object', { consumer: kettle() }, 'create'],
    ['creates a copy again after its deletion in the provider', { consumer: held }, 'create'],
    ['adds the finalizer to an object with a copy', both(kettle(), copy), 'addFinalizer'],
    ['does nothing if both are in sync', both(held, copy), ''],
    ['copies the changes', both(changed, copy), 'update'],
    ['copies the status down', both(held, withStatus({ hot: true })), 'status'],
    ['copies an absent status', both(heldKettle({ status: { hot: true } }), copy), 'status'],
    [
      'updates the copy, adds the finalizer, and copies the status, in this order',
      both(kettle({ spec: { litres: 3 } }), withStatus({ hot: true })),
      'update, addFinalizer, status',
    ],
    ['copies no inexact number', { consumer: kettle({ spec: { litres: inexact } }) }, 'report'],
    [
      'does not update a copy if a number is inexact',
      both(heldKettle({ spec: { litres: inexact } }), withStatus({ hot: true })),
      'report, status',
    ],
    ['copies no inexact number of the status', both(changed, withStatus({ at: inexact })), 'update, report'],
    [
      'copies other changes if the copy already has the inexact number',
      both(heldKettle({ spec: { litres: 3, size: inexact } }), copyOfKettle({ spec: { litres: 2, size: inexact } })),
      'report, update',
    ],
    ['copies the other fields of a status', both(held, withStatus({ at: inexact, hot: true })), 'report, status'],
    [
      'is done when the other fields of a status are copied',
      both(heldKettle({ status: { at: 1, hot: true } }), withStatus({ at: inexact, hot: true })),
      'report',
    ],
    ['updates the annotations of a copy without a uid', both(held, older), 'update'],
    ['updates the annotations of a copy of an earlier object', both(held, ofAnother), 'update'],
    ['does not change an object of another consumer', both(kettle(), foreign), 'report'],
    ['does not change an object of the provider', both(kettle(), native), 'report'],
    ['waits for a copy being deleted', both(held, copyGoes), 'wait'],
    ['waits for a copy whose deletion was requested', { consumer: held, copy, copyDeleteAccepted: true }, 'wait'],
    ['requests a namespace', { consumer: kettle(), place: unmapped }, 'requestNamespace'],
    ['waits for the namespace', { consumer: kettle(), place: { ...unmapped, requested: true } }, 'wait'],
    [
      'creates nothing in a namespace that is being deleted',
      { consumer: kettle(), place: { kind: 'at', key: copyKey, terminating: true } },
      'wait',
    ],
    ['reports a bad name', { consumer: kettle(), place: { kind: 'impossible', problem: 'too long' } }, 'report'],

    ['deletes the copy first', both(leaving, copy), 'deleteCopy'],
    ['waits for the deletion of the copy', both(leaving, copyGoes), 'wait'],
    [
      'removes the finalizer if the deletion of the copy was observed',
      { consumer: leaving, isCopyAbsent: true },
      'removeFinalizer',
    ],
    ['reads the copy before it removes the finalizer', { consumer: leaving }, 'checkCopy'],
    ['updates the annotations before it deletes the copy', both(leaving, ofAnother), 'update'],
    ['updates the annotations of an older copy before it deletes the copy', both(leaving, older), 'update'],
    ['removes the finalizer if the copy is not ours', both(leaving, foreign), 'removeFinalizer'],
    ['does nothing without our finalizer', { consumer: kettle({ metadata: going }) }, ''],
    ['keeps the copy of another object', both(kettle({ metadata: going }), ofAnother), ''],
    [
      'reads the recorded place of the copy if its namespace is no longer known',
      { consumer: leaving, place: unmapped },
      'checkCopy',
    ],
    [
      'removes the finalizer if there never was a copy',
      { consumer: kettle({ metadata: { ...going, finalizers: [syncerFinalizer] } }), place: unmapped },
      'removeFinalizer',
    ],
    [
      'removes the finalizer if there cannot be a copy',
      { consumer: leaving, place: { kind: 'impossible', problem: '' } },
      'removeFinalizer',
    ],

    ['never deletes a copy that names no object', { copy: older }, ''],
    ['never deletes an object of another consumer', { copy: foreign }, ''],
    ['never deletes an object of the provider', { copy: native }, ''],
    ['never deletes the copy of another namespace in the same place', { key: 'team-b/tea', copy }, ''],
    [
      'never adopts that copy either',
      { key: 'team-b/tea', consumer: kettle({ metadata: { namespace: 'team-b', uid: 'c-2' } }), copy },
      'report',
    ],
    ['does not delete twice', { copy: copyGoes }, ''],
    ['does nothing without any object', {}, ''],

    ['drain: copies nothing to the provider', { mode: 'drain', consumer: kettle() }, ''],
    ['drain: no change', { mode: 'drain', consumer: heldKettle({ spec: {} }), copy: withStatus({}) }, ''],
    ['drain: deletes the copy', { mode: 'drain', consumer: leaving, copy }, 'deleteCopy'],
  ];
  for (const [title, facts, expected] of cases) {
    it(title, () => assert.equal(verbs(facts).join(', '), expected));
  }

  it('does not mark an observed deletion as inferred', () => {
    const inferred = (deletedConsumerUid: string | undefined): boolean[] =>
      planned({ copy, deletedConsumerUid }).map((action) => action.do === 'deleteCopy' && action.inferred);
    assert.deepEqual([inferred('c-1'), inferred('c-0'), inferred(undefined)], [[false], [true], [true]]);
  });

  it('creates a copy without the metadata of the consumer cluster', () => {
    const owner = { apiVersion: 'v1', kind: 'Namespace', name: clusterNamespace, uid: 'n-1' };
    const consumer = heldKettle({
      metadata: {
        labels: { app: 'tea' },
        annotations: { note: 'mine', [providerUidAnnotation]: 'p-0', [lastApplied]: '{}' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }],
        managedFields: [{}],
      },
      status: { hot: true },
      data: { more: 1 },
    });
    const metadata = {
      namespace: 'kb-acme-team-a',
      name: 'tea',
      labels: { app: 'tea' },
      annotations: { note: 'mine', ...copyAnnotations },
      ownerReferences: [owner],
    };
    const type = { apiVersion: 'kitchen.example/v1', kind: 'Kettle' };
    const object = { ...type, metadata, spec: { litres: 2 }, data: { more: 1 } };
    assert.deepEqual(planned({ consumer }, { owner }), [{ do: 'create', key: copyKey, object }]);
  });

  it('copies every field but metadata and status, and removed fields as null', () => {
    const consumer = heldKettle({ spec: { litres: 2 }, data: { b: 1 }, status: { x: 1 } });
    const copy = copyOfKettle({ spec: { litres: 2, colour: 'red' }, rules: [1], status: { x: 1 } });
    const patch = { metadata: { uid: 'p-1' }, spec: { colour: null }, data: { b: 1 }, rules: null };
    assert.deepEqual(planned({ consumer, copy }), [{ do: 'update', key: copyKey, patch }]);
  });

  it('repairs our annotations when nothing else differs', () => {
    const patch = { metadata: { uid: 'p-1', annotations: { [consumerUidAnnotation]: 'c-1' } } };
    assert.deepEqual(planned({ consumer: held, copy: ofAnother }), [{ do: 'update', key: copyKey, patch }]);
  });

  it('adds the finalizer with one patch, with resourceVersion if it replaces the list', () => {
    const consumer = kettle({ metadata: { finalizers: ['other/one'] } });
    const annotations = { [providerNamespaceAnnotation]: 'kb-acme-team-a', [providerUidAnnotation]: 'p-1' };
    const metadata = { uid: 'c-1', resourceVersion: '5', finalizers: ['other/one', syncerFinalizer], annotations };
    assert.deepEqual(planned({ consumer, copy }), [{ do: 'addFinalizer', patch: { metadata } }]);
    const repair = heldKettle({ metadata: { annotations: { ...annotations, [providerUidAnnotation]: 'p-0' } } });
    assert.deepEqual(planned({ consumer: repair, copy }), [
      { do: 'addFinalizer', patch: { metadata: { uid: 'c-1', annotations: { [providerUidAnnotation]: 'p-1' } } } },
    ]);
  });

  it('keeps the finalizers of other clients when it removes ours', () => {
    const consumer = heldKettle({ metadata: { ...going, finalizers: ['a/b', syncerFinalizer, 'c/d'] } });
    assert.deepEqual(planned({ consumer, isCopyAbsent: true }), [
      { do: 'removeFinalizer', patch: { metadata: { uid: 'c-1', resourceVersion: '5', finalizers: ['a/b', 'c/d'] } } },
    ]);
  });

  it('reports a problem if the status is no subresource', () => {
    const warm = copyOfKettle({ status: { hot: true } });
    assert.deepEqual(verbs({ consumer: held, copy: warm }, { statusSubresource: false }), ['report']);
    assert.deepEqual(verbs({ consumer: held, copy }, { statusSubresource: false }), []);
  });

  it('accepts metadata of any shape', () => {
    for (const annotations of [[], 'x', 7, { [clusterNamespaceAnnotation]: 7 }] as unknown as Record<
      string,
      string
    >[]) {
      assert.deepEqual(verbs({ consumer: held, copy: copyOfKettle({ metadata: { annotations } }) }), ['report']);
    }
  });

  it('takes the place of a copy from the object if its namespace is not known', () => {
    assert.equal(copyKeyOf(unmapped, held), copyKey);
    assert.equal(copyKeyOf(unmapped, kettle()), undefined);
    assert.equal(copyKeyOf({ kind: 'impossible', problem: '' }, held), undefined);
  });
});
