import assert from 'node:assert/strict';
import { checkSelection } from '../../../../src/access/builders/pod-access.ts';
import type { SelectorView } from '../../../../src/access/stores/cluster-views.ts';

const view = (kind: SelectorView['kind'], name: string, selector: SelectorView['selector']): SelectorView => ({
  key: `payments/${name}`,
  uid: name,
  resourceVersion: '1',
  namespace: 'payments',
  kind,
  name,
  selector,
});

const own = { 'access.drawbridge.dev/request': 'u' };
const labels = { ...own, app: 'web' };
const web = { matchLabels: { app: 'web' } };

describe('what selects an access pod', () => {
  for (const kind of ['Service', 'PodDisruptionBudget', 'NetworkPolicy'] as const) {
    it(`must not be a ${kind} of the namespace`, () => {
      const violation = checkSelection(labels, own, [view(kind, 'other', {}), view(kind, 'web', web)]);
      assert.equal(violation?.code, 'PodIsSelected');
      assert.match(violation?.message ?? '', new RegExp(`^${kind} web selects the access pod`));
    });

    it(`may be a ${kind} that the template lists`, () =>
      assert.equal(checkSelection(labels, own, [view(kind, 'web', web)], [{ kind, name: 'web' }]), undefined));
  }

  const harmless: [string, SelectorView][] = [
    ['a Service of other pods', view('Service', 'db', { matchLabels: { app: 'db' } })],
    ['a Service that asks for more labels', view('Service', 'v2', { matchLabels: { app: 'web', version: '2' } })],
    ['a Service without a selector', view('Service', 'external', undefined)],
    ['a Service with an empty selector', view('Service', 'external', { matchLabels: {} })],
    ['a policy for the whole namespace', view('NetworkPolicy', 'default-deny', {})],
    [
      'a policy for pods that lack a label',
      view('NetworkPolicy', 'strangers', { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] }),
    ],
    [
      'a selector that Kubernetes would not take',
      view('PodDisruptionBudget', 'bad', { matchExpressions: [{ key: 'app', operator: 'Like' }] }),
    ],
  ];
  for (const [title, selector] of harmless) {
    it(`may be ${title}`, () => assert.equal(checkSelection(labels, own, [selector]), undefined));
  }

  it('is allowed by kind and name, not by one of them', () => {
    const listed = [{ kind: 'NetworkPolicy' as const, name: 'web' }];
    assert.equal(checkSelection(labels, own, [view('Service', 'web', web)], listed)?.code, 'PodIsSelected');
  });
});
