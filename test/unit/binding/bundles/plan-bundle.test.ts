import assert from 'node:assert/strict';
import { apiServiceBindingBundles, bindGroup } from '../../../../src/api/binding/names.ts';
import { planBundle, settleMs } from '../../../../src/binding/bundles/plan-bundle.ts';
import type { BindingView, BundleView } from '../../../../src/binding/stores/views.ts';

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
  readonly missing?: Readonly<Record<string, number | 'seen'>>;
  readonly create?: readonly string[];
  readonly delete?: readonly string[];
  readonly waiting?: readonly string[];
  readonly held?: readonly string[];
  readonly againInMs?: number;
}

const cases: readonly Case[] = [
  { title: 'makes a binding for each export', exports: ['b', 'a'], bindings: [], create: ['a', 'b'] },
  { title: 'leaves what fits alone', exports: ['a'], bindings: [binding('a')] },
  {
    title: 'makes none where one of another owner is',
    exports: ['a'],
    bindings: [binding('a', { ownerReferences: [] })],
  },
  { title: 'makes none while the old one is going', exports: ['a'], bindings: [binding('a', { deleting: true })] },
  {
    title: 'deletes a binding whose export was seen being deleted',
    exports: ['a'],
    bindings: [binding('a'), binding('b')],
    missing: { b: 'seen' },
    delete: ['b'],
  },
  {
    title: 'deletes even the last one then',
    exports: [],
    bindings: [binding('b')],
    missing: { b: 'seen' },
    delete: ['b'],
  },
  {
    title: 'waits for an export that is only not there',
    exports: ['a'],
    bindings: [binding('a'), binding('b'), binding('c')],
    missing: { b: 10_000, c: 20_000 },
    waiting: ['b', 'c'],
    againInMs: settleMs - 20_000,
  },
  {
    title: 'deletes a binding whose export did not come back',
    exports: ['a'],
    bindings: [binding('a'), binding('b'), binding('c')],
    missing: { b: settleMs, c: 1000 },
    delete: ['b'],
    waiting: ['c'],
    againInMs: settleMs - 1000,
  },
  {
    title: 'deletes nothing when everything vanishes at once, however long it lasts',
    exports: [],
    bindings: [binding('a'), binding('b')],
    missing: { a: settleMs * 100, b: settleMs * 100 },
    held: ['a', 'b'],
  },
  {
    title: 'tells those seen apart when everything is gone',
    exports: [],
    bindings: [binding('a'), binding('b')],
    missing: { a: 'seen', b: settleMs },
    delete: ['a'],
    held: ['b'],
  },
  {
    title: 'deletes no binding of anybody else, nor one that is going',
    exports: ['a'],
    bindings: [
      binding('b', { ownerReferences: [] }),
      binding('c', { ownerReferences: [owner('another bundle')] }),
      binding('d', { ownerReferences: [owner(bundle.uid, 'v1', 'ConfigMap')] }),
      binding('e', { ownerReferences: [owner(bundle.uid, 'example.com/v1')] }),
      binding('f', { deleting: true }),
    ],
    missing: { b: 'seen', c: 'seen', d: 'seen', e: 'seen', f: 'seen' },
    create: ['a'],
  },
];

describe('bundle plan', () => {
  for (const { title, exports, bindings, missing = {}, ...expected } of cases) {
    it(title, () => {
      const plan = planBundle({
        bundle,
        exports: new Set(exports),
        bindings,
        missing: (name) => missing[name] ?? 0,
      });
      const names = (list: readonly BindingView[]): string[] => list.map(({ name }) => name);
      assert.deepEqual(
        {
          create: plan.create,
          delete: names(plan.delete),
          waiting: names(plan.waiting),
          held: names(plan.held),
          againInMs: plan.againInMs,
        },
        { create: [], delete: [], waiting: [], held: [], againInMs: undefined, ...expected },
      );
    });
  }
});
