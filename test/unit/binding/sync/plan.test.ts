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
  kettles,
} from './support.ts';

const context: SyncContext = {
  clusterNamespace,
  bindingUid: 'b-1',
  provider: kettles,
  owner: undefined,
  statusSubresource: true,
};
const key = 'team-a/tea';
const copyKey = 'kb-acme-team-a/tea';
const base: ObjectFacts = {
  mode: 'sync',
  key,
  consumer: undefined,
  deletedConsumerUid: undefined,
  place: { kind: 'at', key: copyKey },
  copy: undefined,
  isCopyDeleting: false,
  isCopyAbsent: false,
};
const planned = (facts: Partial<ObjectFacts>, changed: Partial<SyncContext> = {}): readonly ObjectAction[] =>
  plan({ ...base, ...facts }, { ...context, ...changed });
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

/** What is left of 9007199254740993. */
const inexact = 2 ** 53;

describe('plan of a key', () => {
  const cases: [string, Partial<ObjectFacts>, string[]][] = [
    ['creates the copy of a new object', { consumer: kettle() }, ['create']],
    ['creates again what was deleted in the provider', { consumer: heldKettle() }, ['create']],
    ['marks an object whose copy exists', { consumer: kettle(), copy: copyOfKettle() }, ['addFinalizer']],
    ['does nothing in step', { consumer: heldKettle(), copy: copyOfKettle() }, []],
    ['takes changes up', { consumer: heldKettle({ spec: { litres: 3 } }), copy: copyOfKettle() }, ['update']],
    ['takes status down', { consumer: heldKettle(), copy: copyOfKettle({ status: { hot: true } }) }, ['status']],
    [
      'takes an absent status down',
      { consumer: heldKettle({ status: { hot: true } }), copy: copyOfKettle() },
      ['status'],
    ],
    [
      'goes up, marks and goes down in this order',
      { consumer: kettle({ spec: { litres: 3 } }), copy: copyOfKettle({ status: { hot: true } }) },
      ['update', 'addFinalizer', 'status'],
    ],
    ['copies no number that it cannot hold', { consumer: kettle({ spec: { litres: inexact } }) }, ['report']],
    [
      'leaves a copy as it is when it cannot hold a number',
      { consumer: heldKettle({ spec: { litres: inexact } }), copy: copyOfKettle({ status: { hot: true } }) },
      ['report', 'status'],
    ],
    [
      'takes no number down that it cannot hold',
      { consumer: heldKettle({ spec: { litres: 3 } }), copy: copyOfKettle({ status: { at: inexact } }) },
      ['update', 'report'],
    ],
    [
      'takes other changes up to a copy that has such a number already',
      {
        consumer: heldKettle({ spec: { litres: 3, size: inexact } }),
        copy: copyOfKettle({ spec: { litres: 2, size: inexact } }),
      },
      ['report', 'update'],
    ],
    [
      'takes the rest of a status down',
      { consumer: heldKettle(), copy: copyOfKettle({ status: { at: inexact, hot: true } }) },
      ['report', 'status'],
    ],
    [
      'is done when the rest of a status is down',
      {
        consumer: heldKettle({ status: { at: 1, hot: true } }),
        copy: copyOfKettle({ status: { at: inexact, hot: true } }),
      },
      ['report'],
    ],
    ['stamps a copy that tells no uid', { consumer: heldKettle(), copy: older }, ['update']],
    ['stamps a copy of an earlier object of the name', { consumer: heldKettle(), copy: ofAnother }, ['update']],
    ['leaves alone what another consumer has', { consumer: kettle(), copy: foreign }, ['report']],
    ['leaves alone what the provider has', { consumer: kettle(), copy: native }, ['report']],
    ['waits for a copy that goes', { consumer: heldKettle(), copy: copyOfKettle({ metadata: going }) }, ['wait']],
    [
      'waits for a copy that was told to go',
      { consumer: heldKettle(), copy: copyOfKettle(), isCopyDeleting: true },
      ['wait'],
    ],
    ['asks for a namespace', { consumer: kettle(), place: unmapped }, ['requestNamespace']],
    ['waits for the namespace', { consumer: kettle(), place: { ...unmapped, requested: true } }, ['wait']],
    [
      'makes nothing in a namespace that goes',
      { consumer: kettle(), place: { kind: 'at', key: copyKey, closing: true } },
      ['wait'],
    ],
    [
      'complains of a name that cannot be',
      { consumer: kettle(), place: { kind: 'impossible', problem: 'too long' } },
      ['report'],
    ],

    ['deletes the copy first', { consumer: heldKettle({ metadata: going }), copy: copyOfKettle() }, ['deleteCopy']],
    [
      'waits for its end',
      { consumer: heldKettle({ metadata: going }), copy: copyOfKettle({ metadata: going }) },
      ['wait'],
    ],
    [
      'lets go when it was seen to go',
      { consumer: heldKettle({ metadata: going }), isCopyAbsent: true },
      ['removeFinalizer'],
    ],
    ['looks before it lets go', { consumer: heldKettle({ metadata: going }) }, ['checkCopy']],
    ['stamps before it deletes', { consumer: heldKettle({ metadata: going }), copy: ofAnother }, ['update']],
    ['stamps an older copy before it deletes', { consumer: heldKettle({ metadata: going }), copy: older }, ['update']],
    ['lets go of what is not ours', { consumer: heldKettle({ metadata: going }), copy: foreign }, ['removeFinalizer']],
    ['leaves to others what waits for others', { consumer: kettle({ metadata: going }) }, []],
    ['leaves a copy that was never this one', { consumer: kettle({ metadata: going }), copy: ofAnother }, []],
    [
      'looks where the copy was when its namespace is not known any more',
      { consumer: heldKettle({ metadata: going }), place: unmapped },
      ['checkCopy'],
    ],
    [
      'lets go of what never had a copy',
      { consumer: kettle({ metadata: { ...going, finalizers: [syncerFinalizer] } }), place: unmapped },
      ['removeFinalizer'],
    ],
    [
      'lets go of what could not have a copy',
      { consumer: heldKettle({ metadata: going }), place: { kind: 'impossible', problem: '' } },
      ['removeFinalizer'],
    ],

    ['deletes a copy without an object', { copy: copyOfKettle() }, ['deleteCopy']],
    ['never deletes what tells no object', { copy: older }, []],
    ['never deletes what is foreign', { copy: foreign }, []],
    ['never deletes what is native', { copy: native }, []],
    [
      'never deletes the copy of an object of another namespace that has the same place',
      { key: 'team-b/tea', copy: copyOfKettle() },
      [],
    ],
    [
      'never takes it over either',
      {
        key: 'team-b/tea',
        consumer: kettle({ metadata: { namespace: 'team-b', uid: 'c-2' } }),
        copy: copyOfKettle(),
      },
      ['report'],
    ],
    ['does not delete twice', { copy: copyOfKettle({ metadata: going }) }, []],
    ['does nothing about nothing', {}, []],

    ['drain: takes nothing up', { mode: 'drain', consumer: kettle() }, []],
    [
      'drain: changes nothing',
      { mode: 'drain', consumer: heldKettle({ spec: {} }), copy: copyOfKettle({ status: {} }) },
      [],
    ],
    [
      'drain: deletes',
      { mode: 'drain', consumer: heldKettle({ metadata: going }), copy: copyOfKettle() },
      ['deleteCopy'],
    ],
    ['drain: deletes what has no object', { mode: 'drain', copy: copyOfKettle() }, ['deleteCopy']],
  ];
  for (const [title, facts, expected] of cases) {
    it(title, () => assert.deepEqual(verbs(facts), expected));
  }

  it('does not infer the deletion of what was seen being deleted', () => {
    const inferred = (deletedConsumerUid: string | undefined): boolean[] =>
      planned({ copy: copyOfKettle(), deletedConsumerUid }).map(
        (action) => action.do === 'deleteCopy' && action.inferred,
      );
    assert.deepEqual([inferred('c-1'), inferred('c-0'), inferred(undefined)], [[false], [true], [true]]);
  });

  it('makes a copy without what belongs to the consumer cluster', () => {
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

  it('takes up every field but metadata and status, and what was removed as null', () => {
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

  it('marks with one patch, guarded where it replaces the list of finalizers', () => {
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

  it('keeps the finalizers of others when it lets go', () => {
    const consumer = heldKettle({ metadata: { ...going, finalizers: ['a/b', syncerFinalizer, 'c/d'] } });
    assert.deepEqual(planned({ consumer, isCopyAbsent: true }), [
      { do: 'removeFinalizer', patch: { metadata: { uid: 'c-1', resourceVersion: '5', finalizers: ['a/b', 'c/d'] } } },
    ]);
  });

  it('complains instead of writing a status that is no subresource', () => {
    const copy = copyOfKettle({ status: { hot: true } });
    assert.deepEqual(verbs({ consumer: heldKettle(), copy }, { statusSubresource: false }), ['report']);
    assert.deepEqual(verbs({ consumer: heldKettle(), copy: copyOfKettle() }, { statusSubresource: false }), []);
  });

  it('gets along with metadata of any shape', () => {
    for (const annotations of [[], 'x', 7, { [clusterNamespaceAnnotation]: 7 }] as unknown as Record<
      string,
      string
    >[]) {
      assert.deepEqual(verbs({ consumer: heldKettle(), copy: copyOfKettle({ metadata: { annotations } }) }), [
        'report',
      ]);
    }
  });

  it('knows the place of a copy from the object when its namespace is not known', () => {
    assert.equal(copyKeyOf(unmapped, heldKettle()), copyKey);
    assert.equal(copyKeyOf(unmapped, kettle()), undefined);
    assert.equal(copyKeyOf({ kind: 'impossible', problem: '' }, heldKettle()), undefined);
  });
});
