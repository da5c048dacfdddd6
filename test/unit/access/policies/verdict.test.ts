import assert from 'node:assert/strict';
import { certifies } from '../../../../src/access/policies/shape.ts';
import {
  judge,
  type PolicyRecord,
  readRecord,
  recordData,
  type StoredRecord,
} from '../../../../src/access/policies/verdict.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { certifyingManifests } from '../../../support/certifying-objects.ts';

type Live = ReturnType<typeof certifyingManifests>;

describe('the certifying policies', () => {
  const recorded: PolicyRecord = {
    versions: ['uid-0/1', 'uid-1/1', 'uid-2/1', 'uid-3/1'],
    certifies,
    since: '2026-11-21T09:00:00Z',
    first: true,
    unjudged: [],
  };
  const verdictOf = (change: (live: Live) => readonly (KubeObject | undefined)[], stored: StoredRecord = recorded) =>
    judge(stored, change(certifyingManifests()));
  const policyWith = (spec: object) => (live: Live) => [
    { ...live[0], spec: { ...live[0]?.spec, ...spec } } as KubeObject,
    ...live.slice(1),
  ];
  const bindingWith = (spec: object) => (live: Live) => [
    live[0],
    { ...live[1], spec: { ...live[1]?.spec, ...spec } } as KubeObject,
    ...live.slice(2),
  ];
  const generation = (index: number, number: number) => (live: Live) =>
    live.map((one, at) => (at === index ? { ...one, metadata: { ...one.metadata, generation: number } } : one));

  it('are in force as the chart installs them, if the record has their versions', () => {
    assert.deepEqual(
      verdictOf((live) => live),
      { is: 'inForce' },
    );
  });

  const upgrades: [string, (live: Live) => Live, PolicyRecord][] = [
    ['one was changed once', generation(0, 2), recorded],
    ['a server with more rules wrote the record', (live) => live, { ...recorded, certifies: certifies + 1 }],
  ];
  for (const [what, change, stored] of upgrades) {
    it(`stay in force, with a new record, if ${what}`, () => {
      const versions = change(certifyingManifests()).map(({ metadata }) => `${metadata.uid}/${metadata.generation}`);
      assert.deepEqual(verdictOf(change, stored), { is: 'upgraded', record: { ...recorded, versions, certifies } });
    });
  }

  const gaps: [string, (live: Live) => readonly (KubeObject | undefined)[], StoredRecord?][] = [
    ['one was changed twice', generation(3, 3)],
    ['one has an earlier generation', generation(2, 0)],
    ['one has another uid', (live) => live.map((one) => ({ ...one, metadata: { ...one.metadata, uid: 'new' } }))],
    ['there is no record', (live) => live, 'absent'],
    ['the record is damaged', (live) => live, 'unreadable'],
    ['a server with fewer rules wrote the record', (live) => live, { ...recorded, certifies: certifies - 1 }],
  ];
  for (const [what, change, stored] of gaps) {
    it(`were not in force without a pause if ${what}`, () => {
      const verdict = verdictOf(change, stored);
      assert.equal(verdict.is, 'gap');
      assert.ok('record' in verdict && verdict.record);
    });
  }

  const wrong: [string, (live: Live) => readonly (KubeObject | undefined)[], RegExp][] = [
    ['a policy does not exist', (live) => [undefined, ...live.slice(1)], /Policy drawbridge-access does not exist/],
    ['a binding does not exist', (live) => [...live.slice(0, 3), undefined], /drawbridge-children does not exist/],
    [
      'a policy is being deleted',
      (live) =>
        live.map((one) => ({ ...one, metadata: { ...one.metadata, deletionTimestamp: '2026-11-21T09:00:00Z' } })),
      /drawbridge-access is being deleted/,
    ],
    ['a policy may fail', policyWith({ failurePolicy: 'Ignore' }), /failurePolicy "Ignore", and must have "Fail"/],
    [
      'a policy has a condition',
      policyWith({ matchConditions: [{ name: 'a', expression: 'false' }] }),
      /spec\.matchConditions/,
    ],
    ['a policy has parameters', policyWith({ paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }), /spec\.paramKind/],
    ['a policy matches less', policyWith({ matchConstraints: { resourceRules: [] } }), /spec\.matchConstraints/],
    ['a policy has no validations', policyWith({ validations: [] }), /has no validations/],
    ['a policy is of an earlier release', policyWith({ variables: [] }), /must have at least 1/],
    ['a binding only audits', bindingWith({ validationActions: ['Audit'] }), /\["Audit"\], and must have \["Deny"\]/],
    [
      'a binding is narrowed',
      bindingWith({ matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } }),
      /spec\.matchResources/,
    ],
    ['a binding has parameters', bindingWith({ paramRef: { name: 'a' } }), /spec\.paramRef/],
    ['a binding is of another policy', bindingWith({ policyName: 'other' }), /spec\.policyName "other"/],
  ];
  for (const [what, change, problem] of wrong) {
    it(`are not in force, whatever the record says, if ${what}`, () => {
      const verdict = verdictOf(change);
      assert.ok(verdict.is === 'gap');
      assert.match(verdict.problem, problem);
      assert.equal(verdict.record, undefined);
    });
  }

  it('have a record that a Secret keeps', () => {
    const secret = (data: unknown) =>
      ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'r' }, data }) as KubeObject;
    assert.deepEqual(readRecord(secret(recordData(recorded))), recorded);
    assert.equal(readRecord(undefined), 'absent');
    for (const data of [
      undefined,
      {},
      { record: '' },
      { record: 'e30=' },
      { record: '!' },
      recordData({ ...recorded, versions: [] }),
      recordData({ ...recorded, since: 'soon' }),
    ]) {
      assert.equal(readRecord(secret(data)), 'unreadable');
    }
  });
});
