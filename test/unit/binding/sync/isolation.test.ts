import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Isolation, isolationOf } from '../../../../src/binding/sync/isolation.ts';
import { clusterNamespace, pairs } from './support.ts';

const of = (scope: 'Namespaced' | 'Cluster', isolation: 'Prefixed' | 'Namespaced' | 'None'): Isolation =>
  isolationOf({ scope }, { isolation }, clusterNamespace, pairs);

describe('isolation', () => {
  const strategies = {
    byNamespace: of('Namespaced', 'Prefixed'),
    prefixed: of('Cluster', 'Prefixed'),
    namespaced: of('Cluster', 'Namespaced'),
    none: of('Cluster', 'None'),
  };

  it('maps namespaced kinds by namespace, whatever the isolation of the export', () => {
    for (const isolation of ['Prefixed', 'Namespaced', 'None'] as const) {
      const place = of('Namespaced', isolation).placeOf('team-a/tea');
      assert.deepEqual(place, { kind: 'at', key: 'kb-acme-team-a/tea' });
    }
  });

  const places: [keyof typeof strategies, string, string, owned: boolean][] = [
    ['byNamespace', 'team-a/tea', 'kb-acme-team-a/tea', false],
    ['prefixed', 'tea', 'kb-acme-tea', true],
    ['namespaced', 'tea', 'kb-acme/tea', false],
    ['none', 'tea', 'tea', true],
  ];
  for (const [name, consumerKey, providerKey, owned] of places) {
    it(`${name}: ${consumerKey} is ${providerKey} in the provider, and back`, () => {
      assert.equal(strategies[name].providerNamespaced, providerKey.includes('/'));
      assert.equal(strategies[name].ownedByClusterNamespace, owned);
      assert.deepEqual(strategies[name].placeOf(consumerKey), { kind: 'at', key: providerKey });
      assert.equal(strategies[name].consumerKeyOf(providerKey), consumerKey);
    });
  }

  const strangers: [keyof typeof strategies, string][] = [
    ['byNamespace', 'kb-other-team-a/tea'],
    ['byNamespace', 'team-a/tea'],
    ['prefixed', 'kb-acme'],
    ['prefixed', 'kb-acme-'],
    ['prefixed', 'kb-other-tea'],
    ['namespaced', 'kb-acme2/tea'],
    ['namespaced', 'kb-acme/'],
    ['prefixed', 'kb-acme-x/tea'],
    ['namespaced', 'kb-acme/x/tea'],
    ['none', 'x/tea'],
  ];
  for (const [name, key] of strangers) {
    it(`${name}: ${key} is no copy for this consumer`, () =>
      assert.equal(strategies[name].consumerKeyOf(key), undefined));
  }

  it('distinguishes requested, missing, and deleted namespaces', () => {
    const { byNamespace } = strategies;
    assert.deepEqual(byNamespace.placeOf('team-b/tea'), { kind: 'unmapped', namespace: 'team-b', requested: true });
    assert.deepEqual(byNamespace.placeOf('team-c/tea'), { kind: 'unmapped', namespace: 'team-c', requested: false });
    assert.deepEqual(byNamespace.placeOf('team-d/tea'), { kind: 'at', key: 'kb-acme-team-d/tea', terminating: true });
  });

  it('reports a name that becomes too long', () => {
    assert.equal(strategies.prefixed.placeOf('x'.repeat(245)).kind, 'at');
    const place = strategies.prefixed.placeOf('x'.repeat(246));
    assert.ok(place.kind === 'impossible');
    assert.match(place.problem, /; the name of its copy begins with "[^"]+", which leaves at most 245/);
    assert.equal(strategies.none.placeOf('x'.repeat(253)).kind, 'at');
  });

  it('maps no two objects to the same place', () => {
    const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?$/);
    fc.assert(
      fc.property(name, name, (a, b) => {
        for (const strategy of [strategies.prefixed, strategies.namespaced, strategies.none]) {
          const [one, other] = [strategy.placeOf(a), strategy.placeOf(b)];
          assert.ok(one.kind === 'at' && other.kind === 'at');
          assert.equal(one.key === other.key, a === b);
          assert.equal(strategy.consumerKeyOf(one.key), a);
        }
      }),
      { seed: 13 },
    );
  });
});
