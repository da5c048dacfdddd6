import assert from 'node:assert/strict';
import { copiedAnnotations } from '../../../../src/access/builders/pod-template-mutation.ts';

describe('the annotations that access pods copy from their workload', () => {
  it('are all except those that other controllers act on', () => {
    const kept = { 'metrics.example.com/scrape': 'true', 'linkerd.io.example.com/x': 'y', note: '' };
    const left = {
      'iam.amazonaws.com/role': 'admin',
      'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/web',
      'vault.hashicorp.com/agent-inject': 'true',
      'sidecar.istio.io/inject': 'true',
      'linkerd.io/inject': 'enabled',
    };
    assert.deepEqual(copiedAnnotations({ ...kept, ...left }), kept);
  });

  it('keep values that switch a feature off', () => {
    const annotations = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' };
    assert.deepEqual(copiedAnnotations(annotations), annotations);
  });

  for (const odd of [undefined, null, 'x', ['y'], JSON.parse('{"__proto__": "x"}')]) {
    it(`do not change ${JSON.stringify(odd)}`, () => assert.deepEqual(copiedAnnotations(odd), odd));
  }
});
