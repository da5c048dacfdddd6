import assert from 'node:assert/strict';
import type { PermissionClaim } from '../../../../src/api/binding/permission-claim.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { openReferences } from '../../../../src/binding/claims/open-references.ts';
import { type Candidate, claimSelector } from '../../../../src/binding/claims/selector.ts';
import type { ExportView, IsolationName } from '../../../../src/binding/stores/provider-stores.ts';
import { projectObject } from '../../../../src/binding/sync/synced-object.ts';
import { storeOf } from '../../../support/binding/stores.ts';
import { exportOf } from './claims-stage.ts';

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
  interface Case {
    readonly what: string;
    readonly selector: Selector;
    readonly object: Candidate;
    readonly referrers?: readonly KubeObject[];
    readonly isolation?: IsolationName;
    /** A part of the expected `selectedBy`. */
    readonly why: RegExp | undefined;
  }
  const refs = [
    { name: 'first', namespace: 'team-x' },
    { name: 'creds', namespace: 'team-a' },
    { name: 'third', namespace: 'team-z' },
  ];
  const cases: readonly Case[] = [
    { what: 'selects nothing without any part', selector: {}, object: secret('creds', { app: 'a' }), why: undefined },
    {
      what: 'selects everything with an empty label selector',
      selector: { labelSelector: {} },
      object: secret(),
      why: /all/,
    },
    { what: 'selects by label', selector: byLabel('a'), object: secret('creds', { app: 'a' }), why: /match app=a/ },
    { what: 'does not select an object without labels', selector: byLabel('a'), object: secret(), why: undefined },
    { what: 'selects by name and namespace', selector: byName('creds', 'team-a'), object: secret(), why: /names it/ },
    { what: 'selects a name in every namespace', selector: byName('creds'), object: secret(), why: /names it/ },
    {
      what: 'treats an empty namespace as all namespaces',
      selector: byName('creds', ''),
      object: secret(),
      why: /names it/,
    },
    { what: 'does not select another name', selector: byName('other', 'team-a'), object: secret(), why: undefined },
    {
      what: 'does not select the name in another namespace',
      selector: byName('creds', 'team-b'),
      object: secret(),
      why: undefined,
    },
    {
      what: 'selects by label if the name differs',
      selector: { ...byLabel('a'), ...byName('other') },
      object: secret('creds', { app: 'a' }),
      why: /app=a/,
    },
    {
      what: 'selects by name if the label differs',
      selector: { ...byLabel('b'), ...byName('creds') },
      object: secret('creds', { app: 'a' }),
      why: /names it/,
    },
    {
      what: 'selects a referenced object',
      selector: byReference('spec.secretRef.name'),
      referrers: [kettle({ secretRef: { name: 'creds' } })],
      object: secret(),
      why: /kettles.kitchen.example team-a\/k refers to it/,
    },
    {
      what: 'selects an object that is referenced by name and namespace',
      selector: byReference('spec.secretRef.name', 'spec.secretRef.namespace'),
      referrers: [kettle({ secretRef: { name: 'creds', namespace: 'team-b' } })],
      object: secret('creds', {}, 'team-b'),
      why: /refers/,
    },
    {
      what: 'does not select an object with another name than the reference',
      selector: byReference('spec.secretRef.name'),
      referrers: [kettle({ secretRef: { name: 'other' } })],
      object: secret(),
      why: undefined,
    },
    {
      what: 'does not select an object in another namespace than the reference',
      selector: byReference('spec.secretRef.name', 'spec.secretRef.namespace'),
      referrers: [kettle({ secretRef: { name: 'creds', namespace: 'team-b' } })],
      object: secret(),
      why: undefined,
    },
    {
      what: 'selects by the name and the namespace of one element',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [kettle({ refs })],
      object: secret(),
      why: /refers/,
    },
    {
      what: 'does not combine the name of one element with the namespace of another',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [kettle({ refs })],
      object: secret('creds', {}, 'team-z'),
      why: undefined,
    },
    {
      what: 'uses the namespace of the referrer for an element without a namespace',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [kettle({ refs: [{ name: 'creds' }] })],
      object: secret(),
      why: /refers/,
    },
    {
      what: 'does not select it in any other namespace',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [kettle({ refs: [{ name: 'creds' }] })],
      object: secret('creds', {}, 'team-b'),
      why: undefined,
    },
    {
      what: 'does not select it if the referrer has no namespace either',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [kettle({ refs: [{ name: 'creds' }] }, '')],
      object: secret(),
      why: undefined,
    },
    {
      what: 'selects nothing by reference without a referrer',
      selector: byReference('spec.secretRef.name'),
      object: secret(),
      why: undefined,
    },
    {
      what: 'does not select an object because of its owner label',
      selector: { ...byLabel('sheriff'), ...byReference('spec.refs.#.name', 'spec.refs.#.namespace') },
      referrers: [kettle({ refs })],
      object: secret('kubeconfig-1', { 'kube-bind.io/owner': 'consumer' }, 'kube-bind'),
      why: undefined,
    },
    {
      what: 'selects in every namespace without a path to the namespace',
      selector: byReference('spec.secretName'),
      referrers: [kettle({ secretName: 'creds' })],
      object: secret('creds', {}, 'remapped'),
      why: /refers/,
    },
    {
      what: 'selects in the namespace of the referrer with isolation Namespaced',
      selector: byReference('spec.secret.name'),
      referrers: [kettle({ secret: { name: 'creds' } })],
      isolation: 'Namespaced',
      object: secret(),
      why: /refers/,
    },
    {
      what: 'selects in no other namespace with isolation Namespaced',
      selector: byReference('spec.secret.name'),
      referrers: [kettle({ secret: { name: 'creds' } })],
      isolation: 'Namespaced',
      object: secret('creds', {}, 'team-b'),
      why: undefined,
    },
    {
      what: 'selects nothing by a namespace that stands for all namespaces',
      selector: byReference('spec.refs.#.name', 'spec.refs.#.namespace'),
      referrers: [
        kettle(
          {
            refs: [
              { name: 'creds', namespace: '*' },
              { name: 'team-a/creds', namespace: ' ' },
            ],
          },
          'team-c',
        ),
      ],
      object: secret(),
      why: undefined,
    },
  ];
  for (const { what, selector, object, referrers, isolation = 'Prefixed', why } of cases) {
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
      const { selector, problems } = select(
        [claimOf(byReference('spec.secretRef.name', undefined, resource))],
        exportOf({ isolation }),
        [kettle({ secretRef: { name: 'creds' } }, 'team-a')],
      );
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
