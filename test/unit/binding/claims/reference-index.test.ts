import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../../../src/api/object.ts';
import { ReferenceIndex, type ReferencePaths } from '../../../../src/binding/claims/reference-index.ts';
import { parseReferencePath, referencesIn } from '../../../../src/binding/claims/reference-path.ts';
import { projectObject, type SyncedObject } from '../../../../src/binding/sync/synced-object.ts';
import { storeOf } from '../../../support/binding/stores.ts';

const path = (text: string) => {
  const parsed = parseReferencePath(text);
  assert.ok(!('problem' in parsed));
  return parsed;
};
const paired: ReferencePaths = {
  name: path('spec.refs.#.name'),
  namespace: path('spec.refs.#.namespace'),
  isolation: 'Prefixed',
};
const kettle = (name: string, resourceVersion: number, refs: readonly unknown[]): KubeObject => ({
  apiVersion: 'kitchen.example/v1',
  kind: 'Kettle',
  metadata: { name, namespace: 'team-a', uid: `uid-of-${name}`, resourceVersion: String(resourceVersion) },
  spec: { refs },
});

describe('the index of references', () => {
  it('follows the events of its store, and notifies listeners of changes', () => {
    const store = storeOf([kettle('one', 1, [{ name: 'x', namespace: 'n' }])], projectObject);
    const index = new ReferenceIndex();
    index.add('kettles', store, paired);
    const told: string[] = [];
    index.subscribe(({ namespace, name }) => told.push(`${namespace ?? '*'}/${name}`));
    assert.equal(index.referrer('n', 'x'), 'kettles team-a/one');

    store.apply('ADDED', kettle('two', 2, [{ name: 'x', namespace: 'n' }, { name: 'y' }]), '2');
    store.apply('MODIFIED', kettle('one', 3, []), '3');
    assert.equal(index.referrer('n', 'x'), 'kettles team-a/two');
    store.apply('DELETED', kettle('two', 4, []), '4');
    assert.equal(index.referrer('n', 'x'), undefined);
    assert.deepEqual(told, ['team-a/y', 'n/x', 'team-a/y']);

    index.close();
    store.apply('ADDED', kettle('three', 5, [{ name: 'x', namespace: 'n' }]), '5');
    assert.equal(index.referrer('n', 'x'), undefined);
    assert.equal(told.length, 3);
  });

  it('notifies listeners when a bound object is the first bound referrer', () => {
    const index = new ReferenceIndex();
    const [bound, unbound] = [storeOf([], projectObject), storeOf([], projectObject)];
    const subscribe: typeof unbound.subscribe = (listener) => unbound.subscribe(listener);
    index.add('pots', { unbound: true, subscribe }, paired);
    index.add('kettles', bound, paired);
    const told: boolean[] = [];
    index.subscribe(() => told.push(index.hasBoundReferrer('team-a', 'x')));
    unbound.apply('ADDED', kettle('pot', 1, [{ name: 'x' }]), '1');
    bound.apply('ADDED', kettle('one', 2, [{ name: 'x' }]), '2');
    bound.apply('ADDED', kettle('two', 3, [{ name: 'x' }]), '3');
    assert.deepEqual(told, [false, true]);
  });

  it('always equals the references of all objects', () => {
    const word = fc.constantFrom('p', 'q', 'r');
    const step = fc.record({
      name: fc.constantFrom('one', 'two', 'three'),
      gone: fc.boolean(),
      refs: fc.array(fc.record({ name: word, namespace: word }, { requiredKeys: ['name'] }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const store = storeOf<SyncedObject>([], projectObject);
        const index = new ReferenceIndex();
        index.add('kettles', store, paired);
        steps.forEach(({ name, gone, refs }, i) => {
          const version = String(i + 1);
          store.apply(gone ? 'DELETED' : 'MODIFIED', kettle(name, i + 1, refs), version);
          const all = [...store.list()].flatMap(({ object }) => referencesIn(object, paired.name, paired.namespace));
          const expected = new Set(all.map((one) => `${one.namespace ?? 'team-a'}/${one.name}`));
          for (const namespace of ['p', 'q', 'r', 'team-a']) {
            for (const target of ['p', 'q', 'r']) {
              assert.equal(index.referrer(namespace, target) !== undefined, expected.has(`${namespace}/${target}`));
            }
          }
        });
      }),
      { seed: 21, numRuns: 200 },
    );
  });
});
