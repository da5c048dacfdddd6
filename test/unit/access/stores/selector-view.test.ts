import assert from 'node:assert/strict';
import { type SelectorView, viewSelector } from '../../../../src/access/stores/cluster-views.ts';
import type { KubeObject } from '../../../../src/api/object.ts';

const view = (kind: SelectorView['kind'], spec: unknown, metadata: object = {}): SelectorView | undefined =>
  viewSelector(kind)({
    apiVersion: 'v1',
    kind: '',
    metadata: { name: 'web', namespace: 'payments', uid: 'u', resourceVersion: '7', ...metadata },
    spec,
  } as KubeObject);

describe('the view of a selector of pods', () => {
  const matchLabels = { app: 'web' };
  for (const [kind, spec, selector] of [
    ['Service', { selector: matchLabels, ports: [] }, { matchLabels }],
    ['Service', { type: 'ExternalName' }, undefined],
    ['PodDisruptionBudget', { selector: { matchLabels } }, { matchLabels }],
    ['NetworkPolicy', { podSelector: { matchLabels }, ingress: [] }, { matchLabels }],
    ['NetworkPolicy', { podSelector: 'web' }, undefined],
    ['PodDisruptionBudget', null, undefined],
  ] as const) {
    it(`has the selector of a ${kind} with ${JSON.stringify(spec)}`, () => {
      assert.deepEqual(view(kind, spec), {
        key: 'payments/web',
        uid: 'u',
        resourceVersion: '7',
        kind,
        namespace: 'payments',
        name: 'web',
        selector,
        isolatesEgress: false,
      });
    });
  }

  for (const [policyTypes, expected] of [
    [['Egress'], true],
    [['Ingress', 'Egress'], true],
    [['Ingress'], false],
    [undefined, false],
    ['Egress', false],
  ] as const) {
    it(`has whether a NetworkPolicy of ${JSON.stringify(policyTypes)} isolates egress: ${expected}`, () =>
      assert.equal(view('NetworkPolicy', { podSelector: {}, policyTypes })?.isolatesEgress, expected));
  }

  it('is undefined without an identity', () => assert.equal(view('Service', {}, { uid: undefined }), undefined));
});
