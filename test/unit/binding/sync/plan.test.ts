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

const copyKey = 'kb-acme-team-a/tea';
const planned = (facts: Partial<ObjectFacts>, changed: Partial<SyncContext> = {}): readonly ObjectAction[] =>
  plan({ ...noFacts, ...facts }, { ...syncContext, ...changed });
const verbs = (...args: Parameters<typeof planned>): string[] => planned(...args).map((action) => action.do);

const going = { deletionTimestamp };
const { [consumerUidAnnotation]: _, ...olderAnnotations } = copyAnnotations;
const foreign = copyOfKettle({
  metadata: { annotations: { ...copyAnnotations, [clusterNamespaceAnnotation]: 'kb-other' } },
});
const native = copyOfKettle({ metadata: { annotations: {} } });
const older = copyOfKettle({ metadata: { annotations: olderAnnotations } });
const ofAnother = copyOfKettle({ metadata: { annotations: { ...copyAnnotations, [consumerUidAnnotation]: 'c-0' } } });
const unmapped = { kind: 'unmapped', namespace: 'team-a', requested: false } as const;

/** The double that JSON.parse returns for 9007199254740993. */
const inexact = 2 ** 53;

describe('the plan of a key', () => {
  const cases: [string, Partial<ObjectFacts>, string[]][] = [
    ['creates the copy of a new object', { consumer: kettle() }, ['create']],
    ['creates a copy again after its deletion in the provider', { consumer: heldKettle() }, ['create']],
    ['adds the finalizer to an object with a copy', { consumer: kettle(), copy: copyOfKettle() }, ['addFinalizer']],
    ['does nothing if both are in sync', { consumer: heldKettle(), copy: copyOfKettle() }, []],
    ['copies the changes', { consumer: heldKettle({ spec: { litres: 3 } }), copy: copyOfKettle() }, ['update']],
    ['copies the status down', { consumer: heldKettle(), copy: copyOfKettle({ status: { hot: true } }) }, ['status']],
    ['copies an absent status', { consumer: heldKettle({ status: { hot: true } }), copy: copyOfKettle() }, ['status']],
    [
      'updates the copy, adds the finalizer, and copies the status, in this order',
      { consumer: kettle({ spec: { litres: 3 } }), copy: copyOfKettle({ status: { hot: true } }) },
      ['update', 'addFinalizer', 'status'],
    ],
    ['copies no inexact number', { consumer: kettle({ spec: { litres: inexact } }) }, ['report']],
    [
      'does not update a copy if a number is inexact',
      { consumer: heldKettle({ spec: { litres: inexact } }), copy: copyOfKettle({ status: { hot: true } }) },
      ['report', 'status'],
    ],
    [
      'copies no inexact number of the status',
      { consumer: heldKettle({ spec: { litres: 3 } }), copy: copyOfKettle({ status: { at: inexact } }) },
      ['update', 'report'],
    ],
    [
      'copies other changes if the copy already has the inexact number',
      {
        consumer: heldKettle({ spec: { litres: 3, size: inexact } }),
        copy: copyOfKettle({ spec: { litres: 2, size: inexact } }),
      },
      ['report', 'update'],
    ],
    [
      'copies the other fields of a status',
      { consumer: heldKettle(), copy: copyOfKettle({ status: { at: inexact, hot: true } }) },
      ['report', 'status'],
    ],
    [
      'is done when the other fields of a status are copied',
      {
        consumer: heldKettle({ status: { at: 1, hot: true } }),
        copy: copyOfKettle({ status: { at: inexact, hot: true } }),
      },
      ['report'],
    ],
    ['updates the annotations of a copy without a uid', { consumer: heldKettle(), copy: older }, ['update']],
    ['updates the annotations of a copy of an earlier object', { consumer: heldKettle(), copy: ofAnother }, ['update']],
    ['does not change an object of another consumer', { consumer: kettle(), copy: foreign }, ['report']],
    ['does not change an object of the provider', { consumer: kettle(), copy: native }, ['report']],
    ['waits for a copy being deleted', { consumer: heldKettle(), copy: copyOfKettle({ metadata: going }) }, ['wait']],
    [
      'waits for a copy whose deletion was requested',
      { consumer: heldKettle(), copy: copyOfKettle(), copyDeleteAccepted: true },
      ['wait'],
    ],
    ['requests a namespace', { consumer: kettle(), place: unmapped }, ['requestNamespace']],
    ['waits for the namespace', { consumer: kettle(), place: { ...unmapped, requested: true } }, ['wait']],
    [
      'creates nothing in a namespace that is being deleted',
      { consumer: kettle(), place: { kind: 'at', key: copyKey, terminating: true } },
      ['wait'],
    ],
    ['reports a bad name', { consumer: kettle(), place: { kind: 'impossible', problem: 'too long' } }, ['report']],

    ['deletes the copy first', { consumer: heldKettle({ metadata: going }), copy: copyOfKettle() }, ['deleteCopy']],
    [
      'waits for the deletion of the copy',
      { consumer: heldKettle({ metadata: going }), copy: copyOfKettle({ metadata: going }) },
      ['wait'],
    ],
    [
      'removes the finalizer if the deletion of the copy was observed',
      { consumer: heldKettle({ metadata: going }), isCopyAbsent: true },
      ['removeFinalizer'],
    ],
    ['reads the copy before it removes the finalizer', { consumer: heldKettle({ metadata: going }) }, ['checkCopy']],
    [
      'updates the annotations before it deletes the copy',
      { consumer: heldKettle({ metadata: going }), copy: ofAnother },
      ['update'],
    ],
    [
      'updates the annotations of an older copy before it deletes the copy',
      { consumer: heldKettle({ metadata: going }), copy: older },
      ['update'],
    ],
    [
      'removes the finalizer if the copy is not ours',
      { consumer: heldKettle({ metadata: going }), copy: foreign },
      ['removeFinalizer'],
    ],
    ['does nothing without our finalizer', { consumer: kettle({ metadata: going }) }, []],
    ['keeps the copy of another object', { consumer: kettle({ metadata: going }), copy: ofAnother }, []],
    [
      'reads the recorded place of the copy if its namespace is no longer known',
      { consumer: heldKettle({ metadata: going }), place: unmapped },
      ['checkCopy'],
    ],
    [
      'removes the finalizer if there never was a copy',
      { consumer: kettle({ metadata: { ...going, finalizers: [syncerFinalizer] } }), place: unmapped },
      ['removeFinalizer'],
    ],
    [
      'removes the finalizer if there cannot be a copy',
      { consumer: heldKettle({ metadata: going }), place: { kind: 'impossible', problem: '' } },
      ['removeFinalizer'],
    ],

    ['never deletes a copy that names no object', { copy: older }, []],
    ['never deletes an object of another consumer', { copy: foreign }, []],
    ['never deletes an object of the provider', { copy: native }, []],
    ['never deletes the copy of another namespace in the same place', { key: 'team-b/tea', copy: copyOfKettle() }, []],
    [
      'never adopts that copy either',
      { key: 'team-b/tea', consumer: kettle({ metadata: { namespace: 'team-b', uid: 'c-2' } }), copy: copyOfKettle() },
      ['report'],
    ],
    ['does not delete twice', { copy: copyOfKettle({ metadata: going }) }, []],
    ['does nothing without any object', {}, []],

    ['drain: copies nothing to the provider', { mode: 'drain', consumer: kettle() }, []],
    ['drain: no change', { mode: 'drain', consumer: heldKettle({ spec: {} }), copy: copyOfKettle({ status: {} }) }, []],
    [
      'drain: deletes the copy',
      { mode: 'drain', consumer: heldKettle({ metadata: going }), copy: copyOfKettle() },
      ['deleteCopy'],
    ],
  ];
  for (const [title, facts, expected] of cases) {
    it(title, () => assert.deepEqual(verbs(facts), expected));
  }

  it('does not mark an observed deletion as inferred', () => {
    const inferred = (deletedConsumerUid: string | undefined): boolean[] =>
      planned({ copy: copyOfKettle(), deletedConsumerUid }).map(
        (action) => action.do === 'deleteCopy' && action.inferred,
      );
    assert.deepEqual([inferred('c-1'), inferred('c-0'), inferred(undefined)], [[false], [true], [true]]);
  });

  it('creates a copy without the metadata of the consumer cluster', () => {
    const owner = { apiVersion: 'v1', kind: 'Namespace', name: clusterNamespace, uid: 'n-1' };
    const consumer = heldKettle({
      metadata: {
        labels: { app: 'tea' },
        annotations: {
          note: 'mine',
          [providerUidAnnotation]: 'p-0',
          'kubectl.kubernetes.io/last-applied-configuration': '{}',
        },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'y' }],
        managedFields: [{}],
      },
      status: { hot: true },
      data: { more: 1 },
    });
    assert.deepEqual(planned({ consumer }, { owner }), [
      {
        do: 'create',
        key: copyKey,
        object: {
          apiVersion: 'kitchen.example/v1',
          kind: 'Kettle',
          metadata: {
            namespace: 'kb-acme-team-a',
            name: 'tea',
            labels: { app: 'tea' },
            annotations: { note: 'mine', ...copyAnnotations },
            ownerReferences: [owner],
          },
          spec: { litres: 2 },
          data: { more: 1 },
        },
      },
    ]);
  });

  it('copies every field but metadata and status, and removed fields as null', () => {
    const consumer = heldKettle({ spec: { litres: 2 }, data: { b: 1 }, status: { x: 1 } });
    const copy = copyOfKettle({ spec: { litres: 2, colour: 'red' }, rules: [1], status: { x: 1 } });
    assert.deepEqual(planned({ consumer, copy }), [
      {
        do: 'update',
        key: copyKey,
        patch: { metadata: { uid: 'p-1' }, spec: { colour: null }, data: { b: 1 }, rules: null },
      },
    ]);
  });

  it('repairs our annotations when nothing else differs', () => {
    assert.deepEqual(planned({ consumer: heldKettle(), copy: ofAnother }), [
      {
        do: 'update',
        key: copyKey,
        patch: { metadata: { uid: 'p-1', annotations: { [consumerUidAnnotation]: 'c-1' } } },
      },
    ]);
  });

  it('adds the finalizer with one patch, with resourceVersion if it replaces the list', () => {
    const consumer = kettle({ metadata: { finalizers: ['other/one'] } });
    const annotations = { [providerNamespaceAnnotation]: 'kb-acme-team-a', [providerUidAnnotation]: 'p-1' };
    assert.deepEqual(planned({ consumer, copy: copyOfKettle() }), [
      {
        do: 'addFinalizer',
        patch: {
          metadata: { uid: 'c-1', resourceVersion: '5', finalizers: ['other/one', syncerFinalizer], annotations },
        },
      },
    ]);
    const repair = heldKettle({ metadata: { annotations: { ...annotations, [providerUidAnnotation]: 'p-0' } } });
    assert.deepEqual(planned({ consumer: repair, copy: copyOfKettle() }), [
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
    const copy = copyOfKettle({ status: { hot: true } });
    assert.deepEqual(verbs({ consumer: heldKettle(), copy }, { statusSubresource: false }), ['report']);
    assert.deepEqual(verbs({ consumer: heldKettle(), copy: copyOfKettle() }, { statusSubresource: false }), []);
  });

  it('accepts metadata of any shape', () => {
    for (const annotations of [[], 'x', 7, { [clusterNamespaceAnnotation]: 7 }] as unknown as Record<
      string,
      string
    >[]) {
      assert.deepEqual(verbs({ consumer: heldKettle(), copy: copyOfKettle({ metadata: { annotations } }) }), [
        'report',
      ]);
    }
  });

  it('takes the place of a copy from the object if its namespace is not known', () => {
    assert.equal(copyKeyOf(unmapped, heldKettle()), copyKey);
    assert.equal(copyKeyOf(unmapped, kettle()), undefined);
    assert.equal(copyKeyOf({ kind: 'impossible', problem: '' }, heldKettle()), undefined);
  });
});
