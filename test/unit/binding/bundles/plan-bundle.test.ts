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

interface Case {
  readonly title: string;
  readonly exports: readonly string[];
  readonly bindings: readonly BindingView[];
  readonly deleted?: readonly string[];
  readonly create?: readonly string[];
  readonly delete?: readonly string[];
  readonly held?: readonly string[];
}

const cases: readonly Case[] = [
  {
    title: 'creates no binding if one of another owner exists',
    exports: ['a'],
    bindings: [binding('a', { ownerReferences: [] })],
  },
  {
    title: 'creates none while the old one is being deleted',
    exports: ['a'],
    bindings: [binding('a', { deleting: true })],
  },
  {
    title: 'deletes no binding of another owner, and none that is being deleted',
    exports: ['a'],
    bindings: [
      binding('b', { ownerReferences: [] }),
      binding('c', { ownerReferences: [owner('another bundle')] }),
      binding('d', { ownerReferences: [owner(bundle.uid, 'v1', 'ConfigMap')] }),
      binding('e', { ownerReferences: [owner(bundle.uid, 'example.com/v1')] }),
      binding('f', { deleting: true }),
    ],
    deleted: ['b', 'c', 'd', 'e', 'f'],
    create: ['a'],
  },
];

describe('the plan of a bundle', () => {
  for (const { title, exports, bindings, deleted = [], ...expected } of cases) {
    it(title, () => {
      const plan = planBundle({
        bundle,
        exports: new Set(exports),
        bindings,
        isDeleted: (name) => deleted.includes(name),
      });
      const names = (list: readonly BindingView[]): string[] => list.map(({ name }) => name);
      assert.deepEqual(
        { create: plan.create, delete: names(plan.delete), held: names(plan.kept) },
        { create: [], delete: [], held: [], ...expected },
      );
    });
  }
});
