import assert from 'node:assert/strict';
import { apiServiceBindingBundles, bindGroup } from '../../../../src/api/binding/names.ts';
import { planBundle } from '../../../../src/binding/bundles/plan-bundle.ts';
import type { BindingView, BundleView } from '../../../../src/binding/stores/consumer-stores.ts';

const bundle = { name: 'acme', uid: 'bundle-uid' } as BundleView;

const binding = (name: string, fields: Partial<BindingView> = {}): BindingView =>
  ({ name, uid: `uid-of-${name}`, deleting: false, ownerReferences: [owner(bundle.uid)], ...fields }) as BindingView;

const owner = (uid: string, apiVersion = `${bindGroup}/v1alpha2`, kind = apiServiceBindingBundles.kind) => ({
  apiVersion,
  kind,
  name: 'acme',
  uid,
});

const cases: readonly [title: string, bindings: readonly BindingView[], created: readonly string[]][] = [
  ['creates no binding if one of another owner exists', [binding('a', { ownerReferences: [] })], []],
  ['creates none while the old one is being deleted', [binding('a', { deleting: true })], []],
  [
    'deletes no binding of another owner, and none that is being deleted',
    [
      binding('b', { ownerReferences: [] }),
      binding('c', { ownerReferences: [owner('another bundle')] }),
      binding('d', { ownerReferences: [owner(bundle.uid, 'v1', 'ConfigMap')] }),
      binding('e', { ownerReferences: [owner(bundle.uid, 'example.com/v1')] }),
      binding('f', { deleting: true }),
    ],
    ['a'],
  ],
];

describe('the plan of a bundle', () => {
  for (const [title, bindings, created] of cases) {
    it(title, () => {
      const plan = planBundle({ bundle, exports: new Set(['a']), bindings, isDeleted: (name) => name !== 'a' });
      assert.deepEqual(plan, { create: created, delete: [], kept: [] });
    });
  }
});
