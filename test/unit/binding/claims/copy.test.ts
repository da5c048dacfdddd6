import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../../../src/api/object.ts';
import { type ClaimedView, claimedView } from '../../../../src/binding/claims/claimed-view.ts';
import { type CopyIdentity, copyOf, isInSync } from '../../../../src/binding/claims/copy.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';

const original: KubeObject = deepFreeze({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 'creds',
    namespace: 'team-a',
    uid: 'consumer-uid',
    resourceVersion: '7',
    generation: 3,
    creationTimestamp: '2026-11-21T09:00:00Z',
    finalizers: ['example.org/wait'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
    managedFields: [{}],
    labels: {
      app: 'kettle',
      'kube-bind.io/owner': 'consumer',
      'kube-bind.io/provider-kubeconfig': 'true',
      'certificates.drawbridge.dev/made-by-server': 'true',
      'not-drawbridge.dev/made-by-server': 'kept',
      'claimed.internal.apis.kcp.io/xyz': 'a',
    },
    annotations: {
      note: 'n',
      'binding.drawbridge.dev/claimable': 'secrets',
      'drawbridge.dev/x': 'y',
      'kcp.io/cluster': 'c',
      'kube-bind.io/provider-uid': 'stale',
    },
  },
  type: 'Opaque',
  immutable: true,
  data: { password: 'c2VjcmV0' },
});
const identity: CopyIdentity = {
  namespace: 'kb-acme-team-a',
  owner: 'consumer',
  origin: { consumerNamespace: 'team-a', consumerUid: 'consumer-uid' },
};

function viewed(object: KubeObject): ClaimedView {
  const { uid = 'uid', resourceVersion = '1' } = object.metadata;
  const view = claimedView({ ...object, metadata: { ...object.metadata, uid, resourceVersion } });
  assert.ok(view);
  return view;
}

describe('the copy of a claimed object', () => {
  it('is immutable only if the field is true', () => {
    for (const immutable of [true, false, 'true', undefined])
      assert.equal(viewed({ ...original, immutable }).immutable, immutable === true);
  });

  it('has the whole content, and no metadata that belongs to the original only', () => {
    assert.deepEqual(copyOf(original, identity), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'creds',
        namespace: 'kb-acme-team-a',
        labels: { app: 'kettle', 'not-drawbridge.dev/made-by-server': 'kept', 'kube-bind.io/owner': 'consumer' },
        annotations: {
          note: 'n',
          'kube-bind.io/consumer-namespace': 'team-a',
          'kube-bind.io/consumer-uid': 'consumer-uid',
        },
      },
      type: 'Opaque',
      immutable: true,
      data: { password: 'c2VjcmV0' },
    });
  });

  it('keeps the own metadata of the current object, and drops what the original no longer has', () => {
    const present: KubeObject = deepFreeze({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'creds',
        namespace: 'kb-acme-team-a',
        uid: 'provider-uid',
        resourceVersion: '9',
        finalizers: ['example.org/theirs'],
        labels: { app: 'old', gone: 'x', 'claimed.internal.apis.kcp.io/abc': 'b' },
        annotations: { gone: 'x', 'kcp.io/cluster': 'theirs', 'kube-bind.io/consumer-uid': 'earlier' },
      },
      type: 'Opaque',
      data: { password: 'b2xk', gone: 'eA==' },
    });
    const copy = copyOf(original, identity, present);
    assert.deepEqual(copy.metadata, {
      ...present.metadata,
      labels: {
        app: 'kettle',
        'not-drawbridge.dev/made-by-server': 'kept',
        'kube-bind.io/owner': 'consumer',
        'claimed.internal.apis.kcp.io/abc': 'b',
      },
      annotations: {
        note: 'n',
        'kcp.io/cluster': 'theirs',
        'kube-bind.io/consumer-namespace': 'team-a',
        'kube-bind.io/consumer-uid': 'consumer-uid',
      },
    });
    assert.deepEqual(copy['data'], { password: 'c2VjcmV0' });
  });

  it('is in sync with its original, for any pair of objects', () => {
    const map = fc.dictionary(fc.string(), fc.string());
    const content = fc.dictionary(
      fc.string().filter((field) => !['apiVersion', 'kind', 'metadata'].includes(field)),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(map, map, content, map, map, (labels, annotations, fields, theirLabels, theirAnnotations) => {
        const [ours, theirs] = [
          { labels, annotations },
          { labels: theirLabels, annotations: theirAnnotations },
        ];
        const type = { apiVersion: 'v1', kind: 'Secret' };
        const source = { ...fields, ...type, metadata: { name: 'n', namespace: 'a', ...ours } };
        const present = { ...type, metadata: { name: 'n', namespace: 'b', ...theirs } };
        for (const copy of [copyOf(source, identity), copyOf(source, identity, present)]) {
          // An API server returns JSON.
          assert.ok(isInSync(viewed(source), viewed(JSON.parse(JSON.stringify(copy)) as KubeObject), identity));
        }
      }),
      { seed: 41, numRuns: 200 },
    );
  });

  const relabeled = (copy: KubeObject, labels: Record<string, string>): KubeObject => ({
    ...copy,
    metadata: { ...copy.metadata, labels },
  });
  const differences: readonly [string, (copy: KubeObject) => KubeObject][] = [
    ['data', (copy) => ({ ...copy, data: { password: 'b3RoZXI=' } })],
    ['a missing field', ({ type: _, ...copy }) => copy as KubeObject],
    ['a label', (copy) => relabeled(copy, { ...copy.metadata.labels, more: 'x' })],
    ['the owner', (copy) => relabeled(copy, { app: 'kettle' })],
    ['the uid annotation', () => copyOf(original, { ...identity, origin: { ...identity.origin, consumerUid: 'x' } })],
  ];
  for (const [what, change] of differences) {
    it(`is not in sync after a change of ${what}`, () => {
      const copy = copyOf(original, identity);
      assert.ok(isInSync(viewed(original), viewed(copy), identity));
      assert.ok(!isInSync(viewed(original), viewed(change(copy)), identity));
    });
  }

  it('has no data in a store', () => {
    assert.doesNotMatch(JSON.stringify(viewed(original)), /c2VjcmV0/);
  });

  it('has no view without uid, resourceVersion, or namespace', () => {
    for (const field of ['uid', 'resourceVersion', 'namespace'] as const) {
      const { [field]: _, ...metadata } = original.metadata;
      assert.equal(claimedView({ ...original, metadata: metadata as KubeObject['metadata'] }), undefined);
    }
  });
});
