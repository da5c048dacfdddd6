import assert from 'node:assert/strict';
import type { PermissionClaim } from '../../../../src/api/binding/permission-claim.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { openReferences } from '../../../../src/binding/claims/open-references.ts';
import { type Candidate, claimSelector } from '../../../../src/binding/claims/selector.ts';
import type { ExportView, IsolationName } from '../../../../src/binding/stores/provider-stores.ts';
import { projectObject } from '../../../../src/binding/sync/synced-object.ts';
import { storeOf } from '../../../support/binding/stores.ts';
import { exportOf } from '../../../support/binding/views.ts';

type Selector = PermissionClaim['selector'];

const claimOf = (selector: Selector): PermissionClaim => ({ group: '', resource: 'secrets', selector });
const byLabel = (app: string): Selector => ({ labelSelector: { matchLabels: { app } } });
const byName = (name: string, namespace?: string): Selector => ({
  namedResources: [namespace === undefined ? { name } : { name, namespace }],
});
const byReference = (name: string, namespace?: string, resource = 'kettles'): Selector => ({
  references: [
    { group: 'kitchen.example', resource, jsonPath: namespace === undefined ? { name } : { name, namespace } },
  ],
});
const byRef = byReference('spec.secretRef.name');
const paired = byReference('spec.secretRef.name', 'spec.secretRef.namespace');
const pairedList = byReference('spec.refs.#.name', 'spec.refs.#.namespace');
const secret = (name = 'creds', labels: Record<string, string> = {}, namespace = 'team-a'): Candidate => ({
  namespace,
  name,
  labels,
});
const kettle = (spec: unknown, namespace = 'team-a'): KubeObject => ({
  apiVersion: 'kitchen.example/v1',
  kind: 'Kettle',
  metadata: { name: 'k', uid: 'u', resourceVersion: '1', ...(namespace === '' ? {} : { namespace }) },
  spec,
});
const labeled = secret('creds', { app: 'a' });
const inTeamB = secret('creds', {}, 'team-b');
/** What exists: a kettle that refers to this Secret. */
const refers = (secretRef: object) => ({ referrers: [kettle({ secretRef })] });
const toCreds = refers({ name: 'creds' });
const toTeamB = refers({ name: 'creds', namespace: 'team-b' });
const isolated = { ...toCreds, isolation: 'Namespaced' } as const;

function select(claims: readonly PermissionClaim[], exported: ExportView, referrers: readonly KubeObject[] = []) {
  const store = storeOf(referrers, projectObject);
  const references = openReferences(claims, exported, () => ({
    subscribe: (listener) => store.subscribe(listener),
    close() {},
  }));
  const selector = claimSelector(claims, references.isEmpty ? undefined : references.index);
  return { selector, problems: [...selector.problems, ...references.problems] };
}

describe('the selector of a claim', () => {
  type Case = readonly [
    what: string,
    selector: Selector,
    object: Candidate,
    /** A part of the expected `selectedBy`. */
    why: RegExp | undefined,
    given?: { readonly referrers?: readonly KubeObject[]; readonly isolation?: IsolationName },
  ];
  const ref = (name: string, namespace: string) => ({ name, namespace });
  const refs = [ref('first', 'team-x'), ref('creds', 'team-a'), ref('third', 'team-z')];
  const cases: readonly Case[] = [
    ['selects nothing without any part', {}, labeled, undefined],
    ['selects everything with an empty label selector', { labelSelector: {} }, secret(), /all/],
    ['selects by label', byLabel('a'), labeled, /match app=a/],
    ['does not select an object without labels', byLabel('a'), secret(), undefined],
    ['selects by name and namespace', byName('creds', 'team-a'), secret(), /names it/],
    ['selects a name in every namespace', byName('creds'), secret(), /names it/],
    ['treats an empty namespace as all namespaces', byName('creds', ''), secret(), /names it/],
    ['does not select another name', byName('other', 'team-a'), secret(), undefined],
    ['does not select the name in another namespace', byName('creds', 'team-b'), secret(), undefined],
    ['selects by label if the name differs', { ...byLabel('a'), ...byName('other') }, labeled, /app=a/],
    ['selects by name if the label differs', { ...byLabel('b'), ...byName('creds') }, labeled, /names it/],
    ['selects a referenced object', byRef, secret(), /kettles.kitchen.example team-a\/k refers to it/, toCreds],
    ['selects an object that is referenced by name and namespace', paired, inTeamB, /refers/, toTeamB],
    ['does not select an object in another namespace than the reference', paired, secret(), undefined, toTeamB],
    [
      'does not select a name without a namespace if the referrer has none either',
      pairedList,
      secret(),
      undefined,
      { referrers: [kettle({ refs: [{ name: 'creds' }] }, '')] },
    ],
    ['selects nothing by reference without a referrer', byRef, secret(), undefined],
    [
      'does not select an object because of its owner label',
      { ...byLabel('sheriff'), ...pairedList },
      secret('kubeconfig-1', { 'kube-bind.io/owner': 'consumer' }, 'kube-bind'),
      undefined,
      { referrers: [kettle({ refs })] },
    ],
    [
      'selects in every namespace without a path to the namespace',
      byRef,
      secret('creds', {}, 'remapped'),
      /refers/,
      toCreds,
    ],
    ['selects in the namespace of the referrer with isolation Namespaced', byRef, secret(), /refers/, isolated],
    ['selects in no other namespace with isolation Namespaced', byRef, inTeamB, undefined, isolated],
    [
      'selects nothing by a namespace that stands for all namespaces',
      pairedList,
      secret(),
      undefined,
      { referrers: [kettle({ refs: [ref('creds', '*'), ref('team-a/creds', ' ')] }, 'team-c')] },
    ],
  ];
  for (const [what, selector, object, why, { referrers, isolation = 'Prefixed' } = {}] of cases) {
    it(what, () => {
      const selected = select([claimOf(selector)], exportOf({ isolation }), referrers).selector.selectedBy(object);
      if (why === undefined) assert.equal(selected, undefined);
      else assert.match(selected ?? '', why);
    });
  }

  const allowed: readonly [IsolationName, string, boolean][] = [
    ['None', 'others', true],
    ['Namespaced', 'others', false],
    ['Prefixed', 'others', false],
    ['Prefixed', 'kettles', true],
    ['Namespaced', 'kettles', true],
  ];
  for (const [isolation, resource, holds] of allowed) {
    it(`${holds ? 'follows' : 'ignores'} references of ${resource} with isolation ${isolation}`, () => {
      const claim = claimOf(byReference('spec.secretRef.name', undefined, resource));
      const { selector, problems } = select([claim], exportOf({ isolation }), toCreds.referrers);
      assert.equal(selector.selectedBy(secret()) !== undefined, holds);
      if (!holds)
        assert.match(problems.join(), /others.kitchen.example: it is not among the resources of the export "kettles"/);
      assert.equal(selector.isEmpty, !holds);
    });
  }

  const pushed: readonly [string, readonly Selector[], string | undefined][] = [
    ['one label selector', [{ labelSelector: { matchLabels: { b: '2', a: '1' } } }], 'a=1,b=2'],
    [
      'expressions',
      [{ labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['x', 'y'] }] } }],
      'a in (x,y)',
    ],
    ['an empty label selector', [{ labelSelector: {} }], undefined],
    ['labels and names', [{ ...byLabel('a'), ...byName('x') }], undefined],
    ['labels and references', [{ ...byLabel('a'), ...byReference('spec.secretName') }], undefined],
    ['labels and a rejected reference', [{ ...byLabel('a'), ...byReference('spec.*') }], 'app=a'],
    ['two claims', [byLabel('a'), byLabel('b')], undefined],
  ];
  for (const [what, selectors, expected] of pushed) {
    it(`narrows the watch for ${what} to ${expected ?? 'nothing'}`, () => {
      assert.equal(select(selectors.map(claimOf), exportOf()).selector.watchSelector, expected);
    });
  }

  it('reports a label selector that is not valid, and applies the other parts', () => {
    const wrong = { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } };
    const { selector, problems } = select([claimOf({ ...wrong, ...byName('creds') })], exportOf());
    assert.match(problems.join(), /claim on secrets selects nothing: .*Like.*allowed are In/);
    assert.match(selector.selectedBy(secret()) ?? '', /names it/);
  });

  it('selects the objects of all claims on one kind', () => {
    const { selector } = select([claimOf(byLabel('a')), claimOf(byLabel('b'))], exportOf());
    assert.match(selector.selectedBy(secret('creds', { app: 'b' })) ?? '', /app=b/);
  });
});
